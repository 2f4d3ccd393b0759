"""The port of limits: those that were set at run time, and how much of each is in use."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from datetime import datetime

from jobqueue.policy.limits.limits import LimitBook
from jobqueue.policy.limits.uses import Kind
from jobqueue.records import Limit, LimitUse, StoredLimit

#: Workers read the stored limits again after so many seconds.
MAX_AGE = 0.5


class Limits(ABC):
    """Stores limits at run time, and reads what is in use.

    - A stored limit replaces the one in code that differs from it only in the number. A stored limit without one in
      code applies too.
    - However many workers claim at once, never more jobs than a limit's number run, or start within a window. Running
      jobs are counted by the leases of rows. If a limit is lowered, jobs that run already continue.
    - Due jobs are taken in the order of priority, due time and id. Jobs whose limits are used up are skipped.
    - A limit with a key applies to the jobs that have a value for the key, for each value by itself.
    """

    @abstractmethod
    def set(self, limit: Limit, reason: str = "", author: str = "") -> None:
        """Store a limit, in place of a stored one that differs only in the number."""

    @abstractmethod
    def unset(self, limit: Limit) -> bool:
        """Delete the stored limit that differs at most in the number. Return whether there was one."""

    @abstractmethod
    def stored(self) -> list[StoredLimit]:
        """List the stored limits by scope, name, kind, window and key."""

    @abstractmethod
    def uses(self, book: LimitBook, pairs: Sequence[tuple[str, str]], most: int = 20) -> list[LimitUse]:
        """Return what is in use of the limits of pairs of queue and type, the most used first.

        Of each limit with a key, at most ``most`` values are returned. Values without use are left out.
        """

    @abstractmethod
    def uses_of(self, book: LimitBook, kinds: Collection[Kind]) -> list[LimitUse]:
        """Return what is in use of the limits of jobs with these queues, types and keys, with ids of running jobs."""

    @abstractmethod
    def first_due(self, queue: str, job_type: str, sample: int = 25) -> list[tuple[str | None, datetime]]:
        """Return the keys and due times of the first due jobs of a queue and type, ``sample`` of each priority."""
