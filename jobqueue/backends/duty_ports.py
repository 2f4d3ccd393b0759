"""The ports that the duties of a worker use: whose turn it is, and the jobs that retention deletes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from jobqueue.policy.retention import EndedJob
from jobqueue.records.duty import DutyRecord

#: A place in the table of jobs, behind which a walk goes on. ``None`` is the newest end.
Place = int | str | None


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


class Retention(ABC):
    """Finds and deletes jobs that have ended. It decides nothing."""

    @abstractmethod
    def walk(self, after: Place, most: int) -> tuple[list[EndedJob], Place]:
        """Read ``most`` jobs, from the newest to the oldest, behind a place. Return those of them that have ended.

        The second value is the place of the last one that was read, or ``None`` if no more jobs follow.
        """

    @abstractmethod
    def before(self, job_id: str) -> Place:
        """Return the place behind which a walk finds the jobs with lesser ids."""

    @abstractmethod
    def rows(self, ids: Sequence[str]) -> list[dict[str, Any]]:
        """Read jobs as JSON: all columns, moments as text, and the history. Jobs that are gone are left out."""

    @abstractmethod
    def prune(self, jobs: Sequence[EndedJob]) -> list[EndedJob]:
        """Delete jobs and their history in one short transaction. Return those that were deleted.

        Jobs that have changed since they were read, or that another session has locked, are left.
        """

    @abstractmethod
    def prune_beside(self, orders: timedelta, errors: timedelta) -> int:
        """Delete some of the orders that ended so long ago, and of the known errors without a job. Return how many.

        An error counts as unused if no dead letter has it, and if it was first seen and last retried so long ago.
        """

    def compact(self) -> bool:
        """Give some unused space back to the file system, if the database can do so bit by bit.

        Return whether there is more to give back. This is for times in which nothing runs.
        """
        return False
