"""The port to an assistant, which finds what rules overlook, draws lessons, and answers prompts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

CATEGORIES = ("decision", "solution", "pitfall", "convention")


@dataclass(frozen=True, slots=True)
class Text:
    """A sanitised message, as the assistant sees it."""

    id: str
    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Oversight:
    """Private data that the rules overlooked. ``snippet`` is its exact text in the message."""

    message_id: str
    category: str
    confidence: float
    snippet: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Lesson:
    """Something worth keeping, and the messages it comes from."""

    category: str
    title: str
    content: str
    confidence: float
    tags: tuple[str, ...] = ()
    source_message_ids: tuple[str, ...] = ()


class Assistant(Protocol):
    """Reads sanitised texts. Raises Busy, Refused or another PortError."""

    def validate(self, texts: Sequence[Text]) -> list[Oversight]:
        """Return the private data that is left."""
        ...

    def extract(self, texts: Sequence[Text], categories: Sequence[str]) -> list[Lesson]:
        """Return lessons of the given categories."""
        ...

    def complete(self, prompt: str) -> str:
        """Answer a prompt."""
        ...
