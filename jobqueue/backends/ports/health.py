"""The port that reads the queue's health."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from datetime import timedelta

from jobqueue.records import (
    DeadJob,
    DeadLetterCount,
    LapsedLeases,
    QuietJob,
)
from jobqueue.records.metric import COUNTED_TO, MOST_GROUPS


class HealthReader(ABC):
    """Reads what an evaluation of the queue's health needs beside depths, metrics and workers.

    The cost of each verb depends on its limits, not on the number of jobs.
    """

    @abstractmethod
    def dead_letters(self, cap: int = COUNTED_TO, most: int = MOST_GROUPS) -> list[DeadLetterCount]:
        """Count dead letters by queue and type, each up to ``cap``, for at most ``most`` such groups.

        If there are many groups, or if the database counts slowly, the cap of each is lower.
        """

    @abstractmethod
    def critical_dead(self, types: Collection[str], limit: int = 100) -> list[DeadJob]:
        """List dead letters of some types, of each queue and type the last ones by id, up to ``limit``."""

    @abstractmethod
    def lapsed_leases(self, grace: timedelta, cap: int = COUNTED_TO) -> list[LapsedLeases]:
        """Count, by owner, the running jobs whose leases ended more than ``grace`` ago, at most ``cap`` of them."""

    @abstractmethod
    def quiet_jobs(self, silence: timedelta, limit: int = 100) -> list[QuietJob]:
        """List running jobs whose last report of progress is older than ``silence``, the oldest report first.

        Jobs that have reported nothing in this attempt are left out.
        """

    @abstractmethod
    def tenants(self, queue: str, job_type: str, sample: int = 25) -> dict[str, int]:
        """Count the tenants in a sample of the due jobs of a queue and type. Jobs without a tenant count for ``""``.

        Of each priority, the sample has the first and the last ``sample`` jobs.
        """

    @abstractmethod
    def clock_skew(self) -> timedelta:
        """Return how far this machine's clock is ahead of the clock by which leases are judged."""
