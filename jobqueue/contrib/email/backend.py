"""The e-mail backend, which enqueues messages instead of sending them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.mail import EmailMessage
from django.core.mail.backends.base import BaseEmailBackend

from jobqueue.api import enqueue_many
from jobqueue.contrib.email.message import packed
from jobqueue.errors import PayloadRefused, QueueFull
from jobqueue.handlers.registry import registry
from jobqueue.records import Draft


class EmailBackend(BaseEmailBackend):
    """Enqueues each message as a job in the caller's transaction, and so sends it only if that commits."""

    def __init__(self, fail_silently: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.fail_silently = fail_silently

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        """Enqueue messages, all or none, and return their number. Messages without a recipient are left out.

        Raises PayloadRefused for a message that is too large or can't be written as JSON, and QueueFull if their queue
        is full, unless ``fail_silently`` is set, and ValueError for a header with a line break.
        """
        drafts = [draft for one in email_messages if one.recipients() and (draft := self._draft(one))]
        try:
            receipts = enqueue_many(drafts) if drafts else []
        except QueueFull:
            if self.fail_silently:
                return 0
            raise
        return sum(not receipt.is_shed for receipt in receipts)

    def _draft(self, message: EmailMessage) -> Draft | None:
        try:
            return registry.get("send_email").draft(packed(message))
        except PayloadRefused:
            if self.fail_silently:
                return None
            raise
