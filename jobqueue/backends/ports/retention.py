"""The port of retention."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from jobqueue.policy.retention import EndedJob

#: A place in the table of jobs, behind which a walk goes on. ``None`` is the newest end.
Place = int | str | None


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
