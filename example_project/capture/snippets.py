"""The record of what was removed from a message: its kind, its finder, and a hash that reveals nothing."""

from __future__ import annotations

from django.utils.crypto import salted_hmac

from example_project.capture.models import Message, SanitizationEntry

#: The most snippets logged for a conversation. A megabyte can contain a hundred thousand, and a transaction with a row
#: for each would block others for many seconds. All of them are removed from the messages.
MOST_LOGGED = 2_000


def snippet_hash(original: str) -> str:
    """Hash a snippet with a key. There are few telephone numbers, so a plain hash could be reversed."""
    return salted_hmac("capture.snippet", original, algorithm="sha256").hexdigest()


def entry(
    message: Message,
    category: str,
    original: str,
    replacement: str,
    detector: str = SanitizationEntry.Detector.RULES,
    confidence: float = 1.0,
) -> SanitizationEntry:
    """Return an unsaved row for a snippet."""
    return SanitizationEntry(
        conversation_id=message.conversation_id,
        message=message,
        category=category,
        original_snippet_hash=snippet_hash(original),
        replacement=replacement,
        detector=detector,
        confidence=confidence,
    )
