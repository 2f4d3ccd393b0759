"""Wake-ups: hints that jobs were committed. Polling finds what they miss."""

from __future__ import annotations

from abc import ABC, abstractmethod

from jobqueue.clock import SYSTEM

#: A process sends at most one wake-up in this many seconds. A worker looks again that long after each wake-up, and once
#: more after twice as long. So it finds what was held back, and producers need no timer.
PAUSE = 0.005


class Producer:
    """Decides whether a wake-up is sent, or covered by the one just before it."""

    def __init__(self) -> None:
        self._last = float("-inf")

    def may_send(self) -> bool:
        """Return whether a wake-up may be sent now."""
        now = SYSTEM.monotonic()
        if now - self._last < PAUSE:
            return False
        self._last = now
        return True


class Listener(ABC):
    """Hears of commits."""

    #: How often ``hear`` finds commits that were not announced; ``None`` if it hears only announcements.
    look_every: float | None = None

    @abstractmethod
    def fileno(self) -> int:
        """Return a descriptor that becomes readable on a wake-up, for a selector."""

    @abstractmethod
    def hear(self, timeout: float) -> bool:
        """Wait for a wake-up, or a commit where it can be seen, at most ``timeout`` seconds."""

    @abstractmethod
    def self_test(self, timeout: float = 2.0) -> bool:
        """Send a wake-up to itself. Return whether it arrived: a transaction pooler loses them."""

    @abstractmethod
    def close(self) -> None:
        """Stop listening."""
