"""The decisions that follow an unsuccessful attempt. ``policy.retry`` makes them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class AttemptCount:
    """The number of an attempt, and how many there may be."""

    number: int
    max_retries: int

    @property
    def left(self) -> bool:
        """Return whether another attempt may follow."""
        return self.number < self.max_retries


@dataclass(frozen=True, slots=True)
class Again:
    """The job goes back to its queue and runs again after the delay."""

    after: timedelta


@dataclass(frozen=True, slots=True)
class Later:
    """The job goes back to its queue, and the attempt isn't counted."""

    after: timedelta


@dataclass(frozen=True, slots=True)
class Alone:
    """The job goes back to its queue, the attempt isn't counted, and it runs next in an executor of its own."""


@dataclass(frozen=True, slots=True)
class Dead:
    """The job becomes a dead letter."""

    reason: str


@dataclass(frozen=True, slots=True)
class Stopped:
    """The job ends on request."""

    reason: str


Decision = Again | Later | Alone | Dead | Stopped
