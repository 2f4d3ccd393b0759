"""Wake-ups: hints that jobs were committed. If a wake-up is lost, polling finds the jobs."""

from __future__ import annotations

from abc import ABC, abstractmethod

from jobqueue.clock import SYSTEM

#: A process sends at most one wake-up in this many seconds. After a wake-up, a worker looks for jobs again after this
#: time and after twice this time. It therefore finds the jobs whose wake-up was not sent, and producers need no timer.
PAUSE = 0.005


class Producer:
    """Decides whether a wake-up is sent, or covered by the one just before it."""

    def __init__(self) -> None:
        self._last = float("-inf")
        self._since = float("-inf")

    def may_send(self, age: float = 0.0) -> bool:
        """Return whether a wake-up may be sent now. One for older jobs isn't covered by one for newer jobs."""
        now = SYSTEM.monotonic()
        since = now - age
        if now - self._last < PAUSE and since >= self._since:
            return False
        self._last, self._since = now, since
        return True


class Listener(ABC):
    """Waits for commits of jobs."""

    #: The seconds between two looks of ``hear`` for commits without a wake-up. ``None`` if it waits for wake-ups only.
    look_every: float | None = None

    @abstractmethod
    def fileno(self) -> int:
        """Return a descriptor that becomes readable on a wake-up, for a selector."""

    @abstractmethod
    def hear(self, timeout: float) -> bool:
        """Wait at most ``timeout`` seconds for a wake-up, or for a commit if this listener looks for commits."""

    @abstractmethod
    def self_test(self, timeout: float = 2.0) -> bool:
        """Send a wake-up to this listener. Return whether it arrived: a transaction pooler loses wake-ups."""

    @abstractmethod
    def close(self) -> None:
        """Stop listening."""
