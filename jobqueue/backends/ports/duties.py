"""The port of the duties that one worker does for all."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import timedelta

from jobqueue.records.duty import DutyRecord


class DutyRoster(ABC):
    """The duties that one worker does for all, and whose turn it is.

    A turn saves the other workers work. It is no lock: a worker that froze in its turn may go on beside its successor.
    """

    @abstractmethod
    def begin(self, name: str, owner: str, every: timedelta) -> timedelta | None:
        """Take a turn at a duty that is done at least once in ``every``, and reserve the duty for ``TURN``.

        Return ``None`` if the turn was taken, and otherwise how long to wait before the next try. The worker that did
        the last turn takes the next one when it is due, and others take it ``PRECEDENCE`` later. Moments further ahead
        than ``every`` come from another program or a clock that was set back, and don't count.
        """

    @abstractmethod
    def end(self, name: str, owner: str, rest: timedelta, took: timedelta, failure: str = "") -> bool:
        """End a turn: the next one is due after ``rest``. Return ``False`` if another worker has taken it over."""

    @abstractmethod
    def all(self) -> list[DutyRecord]:
        """List the duties that were done at least once, by name."""
