"""The ports of a backend: what operators and monitors ask of it, one class for each subject.

A worker needs none of them to run jobs, but for the metrics and the registry that it keeps up to date.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime, timedelta

from jobqueue.records import (
    Amendment,
    Caps,
    DeadLetterCount,
    Depth,
    ErrorGroup,
    ErrorGroups,
    Filter,
    Handled,
    JobRecord,
    MatchCount,
    Matches,
    MetricSum,
    PauseRecord,
    QueueStats,
    Scope,
    Stretch,
    Tally,
    WorkerRecord,
)
from jobqueue.records.metric import COUNTED_TO, MOST_GROUPS


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
        """Read the ids of jobs as ``find`` does, without any column that may be large."""

    @abstractmethod
    def count(self, wanted: Filter, cap: int | None = None) -> int:
        """Count the jobs that match a filter, up to ``cap``."""

    @abstractmethod
    def search(self, wanted: Filter, cap: int, oldest_first: bool = False) -> Matches:
        """Find the ids of the jobs that match a filter, up to ``cap`` and the newest first, in bounded time.

        In contrast to ``find``, the time doesn't grow with the number of jobs. If a backend can't search all jobs, it
        searches only some of them, usually the newest. Then ``Matches.is_part`` is true, and ``Matches.back_to`` says
        how far back it searched. Otherwise the matches are complete up to the cap. A search by id, idempotency key or
        parent alone is always complete. A search with ``created_before`` may miss jobs whose ids were generated more
        than a minute after that time.

        ``oldest_first`` reverses the order. If more jobs match than the cap, either the newest or the oldest of them
        are found.
        """

    def count_matches(self, wanted: Filter, cap: int) -> MatchCount:
        """Count the jobs that match a filter, up to ``cap``, in bounded time. This may count more than ``search``."""
        found = self.search(wanted, cap)
        return MatchCount(len(found), found.more, found.is_part)

    @abstractmethod
    def ahead_of(self, job: JobRecord, cap: int) -> int:
        """Count, up to ``cap``, the due jobs that a claim takes before this one. Paused jobs don't count."""

    @abstractmethod
    def stats(self) -> list[QueueStats]:
        """Count the queued and the running jobs of each queue and type."""

    @abstractmethod
    def dead_letters(self) -> list[DeadLetterCount]:
        """Count the dead letters of each queue and type."""


class Operator(ABC):
    """Does what an operator asks: to jobs by id, and to whole queues and types.

    Each verb is one transaction. It returns which jobs it changed, and which it refused and why.
    """

    @abstractmethod
    def retry(self, ids: Sequence[str], after: timedelta = timedelta(0), every: timedelta = timedelta(0)) -> Handled:
        """Queue failed jobs and dead letters again, with all their attempts. Their history stays.

        The first job is due after ``after``. Each further one, in the order of ``ids``, is due ``every`` after the one
        before it.
        """

    @abstractmethod
    def retry_edited(self, job_id: str, payload: str, payload_version: int, seen: datetime | None = None) -> Handled:
        """Queue a failed job or dead letter again with another payload, as JSON text. ``context`` keeps the first one.

        ``seen`` is the job's ``updated_at`` as the caller knows it. A job that was updated since then is refused.
        """

    @abstractmethod
    def amend(self, ids: Sequence[str], amendment: Amendment) -> Handled:
        """Change the time, queue or priority of queued jobs. Other jobs are refused."""

    @abstractmethod
    def cancel(self, ids: Sequence[str]) -> Handled:
        """End queued jobs as failed, and ask running ones to stop."""

    @abstractmethod
    def purge(self, ids: Sequence[str]) -> Handled:
        """Delete jobs and their history. Running jobs are refused."""

    @abstractmethod
    def pause(self, scope: Scope, name: str, reason: str = "") -> bool:
        """Stop workers from claiming jobs of a queue or type. Return ``False`` if it was paused already."""

    @abstractmethod
    def resume(self, scope: Scope, name: str) -> bool:
        """End a pause. Return whether there was one."""

    @abstractmethod
    def pauses(self) -> list[PauseRecord]:
        """List the paused queues and types."""


class Metrics(ABC):
    """Counts of what became of attempts, and samples of the depth, by stretches of time."""

    @abstractmethod
    def add(self, moment: datetime, tallies: Sequence[Tally]) -> bool:
        """Add tallies to the stretches that a moment falls into. Return whether they were added.

        They are added as a whole, or not at all if another process has locked one of the rows: no process waits for
        metrics. Each tally is added to three totals: that of its queue and type, that of its queue, and that of all
        queues. Without a type, it is added to the last two. Without a queue, it is added only to the last one. A
        stretch has totals for at most ``MOST_GROUPS`` pairs of queue and type, and for as many queues. Further tallies
        are added only to the wider totals.
        """

    @abstractmethod
    def sample(self, moment: datetime) -> bool:
        """Store the depth of each queue and type, unless this minute has a sample. Return whether there is one now.

        Metrics that are too old are deleted on the way.
        """

    @abstractmethod
    def depths(self, cap: int = COUNTED_TO, most: int = MOST_GROUPS) -> list[Depth]:
        """Count queued and running jobs by queue and type, each up to ``cap``, for at most ``most`` such groups.

        If there are many groups, the cap of each is lower. The cost depends on these limits, not on the number of jobs.
        """

    @abstractmethod
    def stretches(self, span: int, since: datetime, queue: str = "", job_type: str = "") -> list[Stretch]:
        """Read the stretches of one length that began at ``since`` or later, the oldest first.

        Without a name they are those of all jobs together. A queue, a type, or both narrow them down.
        """

    @abstractmethod
    def totals(self, by: Scope, span: int, since: datetime, queue: str = "", job_type: str = "") -> list[MetricSum]:
        """Sum up the same stretches by type or by queue, in the order of their names.

        Attempts that were counted without a type or queue are left out.
        """


class WorkerRegistry(ABC):
    """The workers that are up, and those that died recently."""

    @abstractmethod
    def enlist(self, worker: WorkerRecord) -> None:
        """Store that a worker is up now, and forget workers that have been silent for a day."""

    @abstractmethod
    def dismiss(self, owner: str) -> None:
        """Forget a worker that ended."""

    @abstractmethod
    def all(self) -> list[WorkerRecord]:
        """List the workers by name, including dead ones that are not forgotten yet."""


class ErrorReader(ABC):
    """Groups dead letters by the fingerprint of their error."""

    @abstractmethod
    def groups(self, limit: int, caps: Caps) -> ErrorGroups:
        """Sum up at most ``limit`` groups, the one with the latest dead letter first.

        Each count stops at its share of ``caps``. Beyond a thousand fingerprints, some are not found.
        """

    @abstractmethod
    def group(self, fingerprint: str, caps: Caps) -> ErrorGroup | None:
        """Sum up one group. The empty fingerprint stands for the dead letters that have none."""
