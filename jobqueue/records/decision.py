"""What an attempt that did not succeed leads to, as ``policy.retry`` says it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Attempt:
    """Which attempt of how many."""

    number: int
    max_retries: int

    @property
    def left(self) -> bool:
        """Whether another attempt may follow."""
        return self.number < self.max_retries


@dataclass(frozen=True, slots=True)
class Again:
    """The job goes back to its queue and runs again after the delay."""

    after: timedelta


@dataclass(frozen=True, slots=True)
class Later:
    """The job goes back to its queue, and the attempt was free."""

    after: timedelta


@dataclass(frozen=True, slots=True)
class Alone:
    """The job goes back to its queue, the attempt was free, and it runs next in an executor of its own."""


@dataclass(frozen=True, slots=True)
class Dead:
    """The job is given up and waits for an operator."""

    reason: str


@dataclass(frozen=True, slots=True)
class Stopped:
    """The job ends by wish."""

    reason: str


Decision = Again | Later | Alone | Dead | Stopped
