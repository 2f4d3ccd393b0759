"""The only callers of the system clock, and how a moment is written as text."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Tells the time; tests bring their own."""

    def now(self) -> datetime:
        """Tell the moment, aware and in UTC."""
        ...

    def monotonic(self) -> float:
        """Tell the seconds since some fixed point; never goes back."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)  # noqa: TID251 - here and nowhere else

    def monotonic(self) -> float:
        return time.monotonic()  # noqa: TID251 - here and nowhere else


SYSTEM: Clock = SystemClock()

#: A monotonic moment that does not come.
NEVER = float("inf")


def to_text(moment: datetime) -> str:
    """Write an aware moment as ``YYYY-MM-DDTHH:MM:SS.ffffffZ``, so that text order is time order."""
    if moment.tzinfo is not UTC:
        moment = moment.astimezone(UTC)
    return moment.isoformat(timespec="microseconds")[:26] + "Z"


def from_text(text: str) -> datetime:
    """Read what ``to_text`` or a foreign program wrote; always aware, in UTC."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo is UTC else moment.astimezone(UTC)
