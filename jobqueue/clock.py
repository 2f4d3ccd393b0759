"""The system clock and the text form of moments. Nothing else in this package reads the clock."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """A source of time, which tests replace."""

    def now(self) -> datetime:
        """Return the current moment, aware and in UTC."""
        ...

    def monotonic(self) -> float:
        """Return the seconds since a fixed point. Never goes back."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)  # noqa: TID251 - here and nowhere else

    def monotonic(self) -> float:
        return time.monotonic()  # noqa: TID251 - here and nowhere else


SYSTEM: Clock = SystemClock()

#: A monotonic moment that is never reached.
NEVER = float("inf")


def to_text(moment: datetime) -> str:
    """Return an aware moment as ``YYYY-MM-DDTHH:MM:SS.ffffffZ``, a form whose text order is the order of time."""
    if moment.tzinfo is not UTC:
        moment = moment.astimezone(UTC)
    return moment.isoformat(timespec="microseconds")[:26] + "Z"


def from_text(text: str) -> datetime:
    """Parse the text of a moment, also if another program wrote it. Returns an aware datetime in UTC."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo is UTC else moment.astimezone(UTC)
