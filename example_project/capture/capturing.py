"""The storage of an event as rows and a job in one transaction, without private data."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from django.db import IntegrityError, transaction
from django.utils.crypto import constant_time_compare, salted_hmac

from example_project.capture.events import Event
from example_project.capture.jobs import sanitize_ai_validation
from example_project.capture.models import Conversation, Message, SanitizationEntry
from example_project.capture.sanitising import VERSION, Sanitised, sanitise
from example_project.capture.snippets import MOST_LOGGED, entry


class Contradiction(Exception):
    """Another conversation has this id, or had it."""


@dataclass(frozen=True)
class Captured:
    """The result for the sender. ``created`` is false if the same event was captured before."""

    conversation_id: str
    created: bool
    job_id: str | None = None
    removed: int = 0


def capture(event: Event) -> Captured:
    """Sanitise an event, and store it together with its first job.

    Everything is prepared before the transaction begins, because a writing transaction blocks all other writers on
    SQLite. Raises Contradiction.
    """
    clean = [sanitise(said.content) for said in event.messages]
    fingerprint, removed = _fingerprint(event), sum(len(one.findings) for one in clean)
    conversation = Conversation(
        pk=event.conversation_id,
        source=event.source,
        metadata={"event_fingerprint": fingerprint, "removed": removed},
    )
    messages = _messages(conversation, event, clean)
    entries = _entries(messages, clean)
    try:
        with transaction.atomic():
            conversation.save(force_insert=True)
            Message.objects.bulk_create(messages)
            SanitizationEntry.objects.bulk_create(entries)
            receipt = sanitize_ai_validation.using(
                idempotency_key=f"sanitize-ai-validation-{conversation.pk}", tenant=event.source
            ).enqueue(
                conversation_id=conversation.pk,
                message_ids=[message.pk for message in messages],
                sanitization_version=VERSION,
            )
            if not receipt.created:  # the conversation was deleted, but its key remains
                raise Contradiction(conversation.pk)
    except IntegrityError:
        earlier = Conversation.objects.filter(pk=event.conversation_id).first()
        if earlier is None:
            raise
        if not constant_time_compare(earlier.metadata.get("event_fingerprint", ""), fingerprint):
            raise Contradiction(event.conversation_id) from None
        return Captured(event.conversation_id, created=False)
    return Captured(conversation.pk, True, receipt.id, removed)


def _fingerprint(event: Event) -> str:
    return salted_hmac("capture.event", event.model_dump_json(), algorithm="sha256").hexdigest()


def _messages(conversation: Conversation, event: Event, clean: list[Sanitised]) -> list[Message]:
    return [
        Message(
            conversation=conversation,
            position=position,
            role=said.role,
            content=one.text,
            sanitization_version=VERSION,
        )
        for position, (said, one) in enumerate(zip(event.messages, clean, strict=True))
    ]


def _entries(messages: list[Message], clean: list[Sanitised]) -> list[SanitizationEntry]:
    entries = (
        entry(message, finding.category, finding.original, finding.replacement)
        for message, one in zip(messages, clean, strict=True)
        for finding in one.findings
    )
    return list(islice(entries, MOST_LOGGED))
