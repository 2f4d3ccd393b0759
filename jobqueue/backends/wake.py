"""Wake-ups: a hint that jobs were committed, held back when they follow each other closely. Polling stays the truth."""

from __future__ import annotations

from abc import ABC, abstractmethod

from jobqueue.clock import SYSTEM

#: A process sends at most one wake-up in this many seconds; a listener looks again so long after each, and once more
#: after twice as long, so that what was held back is found without a timer on the producer's side.
PAUSE = 0.005


class Producer:
    """Says whether a wake-up may be sent now, or is covered by the one just before it."""

    def __init__(self) -> None:
        self._last = float("-inf")

    def may_send(self) -> bool:
        now = SYSTEM.monotonic()
        if now - self._last < PAUSE:
            return False
        self._last = now
        return True


class Listener(ABC):
    """Hears that jobs were committed."""

    #: How often hear() finds what nobody announces; ``None`` where only announcements are heard.
    look_every: float | None = None

    _looks: tuple[float, ...] = ()

    @abstractmethod
    def fileno(self) -> int:
        """Return a descriptor that becomes readable on a wake-up, for a selector."""

    @abstractmethod
    def hear(self, timeout: float) -> bool:
        """Wait for a wake-up, or a commit where it can be seen, at most ``timeout`` seconds."""

    @abstractmethod
    def self_test(self, timeout: float = 2.0) -> bool:
        """Send a wake-up to itself and say whether it arrived; a transaction pooler swallows them."""

    @abstractmethod
    def close(self) -> None:
        """Stop listening."""

    def wait(self, timeout: float) -> bool:
        """Wait at most ``timeout`` seconds, and say whether it is worth looking for jobs.

        It is after a wake-up, and again 5 and 10 milliseconds later.
        """
        if self._looks:
            timeout = min(timeout, max(0.0, self._looks[0] - SYSTEM.monotonic()))
        heard = self.hear(timeout)
        now = SYSTEM.monotonic()
        if heard:
            self._looks = (now + PAUSE, now + 2 * PAUSE)
            return True
        due = bool(self._looks) and now >= self._looks[0]
        self._looks = tuple(look for look in self._looks if look > now)
        return due
