"""How it is remembered what was taken out of a message: its kind, who found it, and a hash that gives nothing away."""

from __future__ import annotations

from django.utils.crypto import salted_hmac

from example_project.capture.models import Message, SanitizationEntry

#: Of one conversation so many snippets are logged at a time. A megabyte can hold a hundred thousand, and a transaction
#: that writes a row for each would keep everybody else waiting for many seconds. All of them are taken out.
MOST_LOGGED = 2_000


def snippet_hash(original: str) -> str:
    """Hash a snippet with a key: there are few telephone numbers, and a plain hash would tell which."""
    return salted_hmac("capture.snippet", original, algorithm="sha256").hexdigest()


def entry(
    message: Message,
    category: str,
    original: str,
    replacement: str,
    detector: str = SanitizationEntry.Detector.RULES,
    confidence: float = 1.0,
) -> SanitizationEntry:
    """Make the row that tells of one snippet; it is not stored yet."""
    return SanitizationEntry(
        conversation_id=message.conversation_id,
        message=message,
        category=category,
        original_snippet_hash=snippet_hash(original),
        replacement=replacement,
        detector=detector,
        confidence=confidence,
    )
