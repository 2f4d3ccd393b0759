"""The port that reads jobs."""

from __future__ import annotations

from abc import ABC, abstractmethod

from jobqueue.records import (
    DeadLetterCount,
    Filter,
    JobRecord,
    MatchCount,
    Matches,
    QueueStats,
    Step,
)


class JobReader(ABC):
    """Reads and counts jobs."""

    @abstractmethod
    def get(self, job_id: str) -> JobRecord | None:
        """Read one job with its history."""

    @abstractmethod
    def find(
        self, wanted: Filter, limit: int, after_id: str | None = None, newest_first: bool = False
    ) -> list[JobRecord]:
        """Read the jobs that match a filter, without their history, in order of id, starting after ``after_id``."""

    @abstractmethod
    def find_ids(self, wanted: Filter, limit: int, after_id: str | None = None) -> list[str]:
        """Read only the ids of the jobs that ``find`` returns."""

    @abstractmethod
    def count(self, wanted: Filter, cap: int | None = None) -> int:
        """Count the jobs that match a filter, up to ``cap``."""

    @abstractmethod
    def search(self, wanted: Filter, cap: int, oldest_first: bool = False, before_id: str | None = None) -> Matches:
        """Find the ids of the jobs that match a filter, up to ``cap`` and the newest first, in bounded time.

        In contrast to ``find``, the time doesn't grow with the number of jobs. If a backend can't search all jobs, it
        searches only some of them, usually the newest. Then ``Matches.is_part`` is true, and ``Matches.back_to`` says
        how far back it searched. Otherwise the matches are complete up to the cap. A search by id, idempotency key or
        parent alone is always complete, and so is one for failed jobs or dead letters, unless it looks into errors or
        payloads. A search with ``created_before`` may miss jobs whose ids were generated more than a minute after that
        time.

        ``before_id`` searches only jobs with lesser ids. With ``Matches.rest_before`` of an earlier search, it goes on
        where that one ended, and may take longer.

        ``oldest_first`` reverses the order. If more jobs match than the cap, either the newest or the oldest of them
        are found.
        """

    def count_matches(self, wanted: Filter, cap: int) -> MatchCount:
        """Count the jobs that match a filter, up to ``cap``, in bounded time. This may count more than ``search``."""
        found = self.search(wanted, cap)
        return MatchCount(len(found), found.more, found.is_part)

    @abstractmethod
    def queues(self, limit: int) -> list[str]:
        """List queues that have jobs of other statuses than completed, at most ``limit`` of each status."""

    @abstractmethod
    def walk(self, wanted: Filter, most: int, after_id: str | None = None) -> Step:
        """Find the matches among at most ``most`` jobs after an id, in order of id, in bounded time.

        A caller that walks on from ``Step.last`` until it is ``None`` finds each job that matched all the time.
        """

    @abstractmethod
    def ahead_of(self, job: JobRecord, cap: int) -> int:
        """Count the due jobs that a claim takes before this one, up to ``cap``. Paused jobs don't count."""

    @abstractmethod
    def stats(self) -> list[QueueStats]:
        """Count the queued and the running jobs of each queue and type."""

    @abstractmethod
    def dead_letters(self) -> list[DeadLetterCount]:
        """Count the dead letters of each queue and type."""
