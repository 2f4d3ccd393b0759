"""The validation by the assistant: what the rules overlooked is recorded, and removed from the messages."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction

from example_project.capture.merging import Merged
from example_project.capture.models import Conversation, Message, SanitizationEntry
from example_project.capture.ports.assistant import Oversight
from example_project.capture.snippets import MOST_LOGGED, entry
from jobqueue.clock import SYSTEM, to_text


def record(conversation: Conversation, messages: Sequence[Message], oversights: Sequence[Oversight]) -> bool:
    """Store the findings, the messages without them, and the conversation's status, in one transaction.

    Returns False if another attempt did so meanwhile: what that one removed must not come back.
    """
    by_id = {message.pk: message for message in messages}
    # Longer snippets first: one may contain a shorter one, and would not be found without it.
    longest_first = sorted(oversights, key=lambda one: len(one.snippet), reverse=True)
    entries = [_take_out(by_id[one.message_id], one) for one in longest_first if one.message_id in by_id]
    if not entries:
        return _mark_validated(conversation)
    with transaction.atomic():
        if not _mark_validated(conversation):
            return False
        Message.objects.bulk_update({one.message for one in entries}, ["content"])
        SanitizationEntry.objects.bulk_create(entries[:MOST_LOGGED])
    return True


def _mark_validated(conversation: Conversation) -> bool:
    """Mark a conversation as validated. Return whether it wasn't before."""
    now = SYSTEM.now()
    done = {"ai_validation_completed": True, "ai_validation_timestamp": to_text(now)}
    captured = Conversation.objects.filter(pk=conversation.pk, status=Conversation.Status.CAPTURED)
    return bool(
        captured.update(status=Conversation.Status.VALIDATED, metadata=Merged("metadata", done), updated_at=now)
    )


def _take_out(message: Message, found: Oversight) -> SanitizationEntry:
    replacement = f"[{found.category.upper()}]"
    message.content = message.content.replace(found.snippet, replacement)
    return entry(message, found.category, found.snippet, replacement, SanitizationEntry.Detector.AI, found.confidence)
