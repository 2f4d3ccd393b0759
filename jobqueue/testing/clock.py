"""A clock that only moves when told to."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

NOON = datetime(2026, 1, 16, 12, 0, tzinfo=UTC)


class VirtualClock:
    """Returns the time it was set to. ``advance`` moves both the wall clock and the monotonic clock."""

    def __init__(self, start: datetime = NOON) -> None:
        self._now = start
        self._seconds = 0.0

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._seconds

    def advance(
        self,
        length: timedelta | float = 0.0,
        *,
        weeks: float = 0.0,
        days: float = 0.0,
        hours: float = 0.0,
        minutes: float = 0.0,
        seconds: float = 0.0,
    ) -> object:
        """Let time pass: a timedelta or seconds, or lengths by name, as in ``advance(minutes=10)``."""
        step = length if isinstance(length, timedelta) else timedelta(seconds=length)
        step += timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)
        self._pass(step)
        return None

    def _pass(self, step: timedelta) -> None:
        self._now += step
        self._seconds += step.total_seconds()

    def step_back(self, length: timedelta) -> None:
        """Set the wall clock back, as an administrator may. The monotonic clock is unchanged."""
        self._now -= length
