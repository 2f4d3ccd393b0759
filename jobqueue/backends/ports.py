"""The ports of a backend: the methods for operators and monitors, in one class for each subject.

A worker uses only two of the ports: it adds to the metrics, and reports itself to the registry. Those of its duties are
in ``duty_ports``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from jobqueue.policy.fingerprint import Grouping
from jobqueue.records import (
    Amendment,
    Caps,
    DeadLetterCount,
    Depth,
    ErrorGroup,
    ErrorGroups,
    ErrorShares,
    Filter,
    GroupFilter,
    Handled,
    JobRecord,
    LapsedLeases,
    MatchCount,
    Matches,
    MetricSum,
    PauseRecord,
    QueueStats,
    QuietJob,
    Scope,
    Step,
    Stretch,
    Tally,
    WorkerRecord,
    WorkerRequest,
)
from jobqueue.records.metric import COUNTED_TO, MOST_GROUPS
from jobqueue.records.storage import Storage


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


class Operator(ABC):
    """Carries out an operator's actions on jobs, queues and types.

    Each method is one transaction. It returns which jobs it changed, and which it refused and why.
    """

    @abstractmethod
    def retry(self, ids: Sequence[str], after: timedelta = timedelta(0), every: timedelta = timedelta(0)) -> Handled:
        """Queue failed jobs and dead letters again, with all their attempts. Their history stays.

        The first job is due after ``after``. Each other job, in the order of ``ids``, is due ``every`` later than the
        previous job.
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
    def regroup(self, fingerprints: Mapping[str, str]) -> list[str]:
        """Give dead letters, by id, other fingerprints. Return the ids of those that are dead letters.

        Nothing else about them changes. The new groups remember that they were first seen when the first of these
        dead letters was given up.
        """

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
    """Counts of attempts by their outcome, and samples of the depth, for each stretch of time."""

    @abstractmethod
    def add(self, moment: datetime, tallies: Sequence[Tally]) -> bool:
        """Add tallies to the stretches that contain a moment. Return whether they were added.

        If another process has locked one of the rows, no tally is added, because no process waits for metrics. Each
        tally is added to three totals: that of its queue and type, that of its queue, and that of all queues. A tally
        without a type is added to the last two, and one without a queue only to the last. A stretch has totals for at
        most ``MOST_GROUPS`` pairs of queue and type, and for as many queues. Further tallies are added only to the
        wider totals.
        """

    @abstractmethod
    def sample(self, moment: datetime) -> bool:
        """Store the depth of each queue and type, unless this minute has a sample. Return whether it has a sample now.

        Also deletes metrics that are too old.
        """

    @abstractmethod
    def depths(self, cap: int = COUNTED_TO, most: int = MOST_GROUPS) -> list[Depth]:
        """Count queued and running jobs of each queue and type, up to ``cap``, for at most ``most`` such pairs.

        If there are many pairs, or if the database counts slowly, the cap of each is lower. The cost depends on these
        limits, not on the number of jobs.
        """

    @abstractmethod
    def stretches(self, span: int, since: datetime, queue: str = "", job_type: str = "") -> list[Stretch]:
        """Read the stretches of one length that began at ``since`` or later, the oldest first.

        Without ``queue`` and ``job_type``, the stretches have the totals of all jobs.
        """

    @abstractmethod
    def totals(self, by: Scope, span: int, since: datetime, queue: str = "", job_type: str = "") -> list[MetricSum]:
        """Sum up the stretches of one length that began at ``since`` or later, by type or by queue, sorted by name.

        Attempts that were counted without a type or queue are left out.
        """


class WorkerRegistry(ABC):
    """The workers that are up, and those that died recently."""

    @abstractmethod
    def enlist(self, worker: WorkerRecord) -> WorkerRequest | None:
        """Store that a worker is up now, and forget workers that have been silent for a day.

        Return what an operator asked of it. Its own ``asked`` is not stored.
        """

    @abstractmethod
    def dismiss(self, owner: str) -> None:
        """Delete a worker that has ended."""

    @abstractmethod
    def ask(self, owner: str, request: WorkerRequest | None) -> bool:
        """Store what an operator asks of a worker, in place of what was asked before; ``None`` withdraws it.

        The worker is told when it enlists the next time. Return whether there is such a worker.
        """

    @abstractmethod
    def all(self) -> list[WorkerRecord]:
        """List the workers by name, including dead ones that were not deleted yet."""


class StorageReader(ABC):
    """Reads what the database keeps that nobody needs."""

    @abstractmethod
    def read(self) -> Storage:
        """Read the dead rows and who keeps them, and the size of the log. The cost doesn't depend on their number."""


class ErrorReader(ABC):
    """Groups dead letters by the fingerprint of their error."""

    @abstractmethod
    def groups(self, limit: int, caps: Caps, wanted: GroupFilter = GroupFilter()) -> ErrorGroups:  # noqa: B008 - frozen
        """Sum up at most ``limit`` groups, in the order asked for.

        Counts are exact if there are at most ``caps.groups`` dead letters. Otherwise each stops at its share. Of more
        than a thousand groups, a filter looks at the first thousand in that order.
        """

    @abstractmethod
    def group(self, fingerprint: str, caps: Caps) -> ErrorGroup | None:
        """Sum up one group. The empty fingerprint stands for the dead letters that have none."""

    @abstractmethod
    def shares(self, fingerprint: str, most: int) -> ErrorShares:
        """Count which tenants, queues, hosts and releases the newest dead letters of a group have, up to ``most``."""

    @abstractmethod
    def groupings(self, ids: Sequence[str]) -> dict[str, Grouping]:
        """Return what the current rule groups each of these dead letters by, from their stored history.

        Jobs that are not dead letters are left out.
        """

    @abstractmethod
    def outdated(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the fingerprints by the current rule of those of these dead letters that have others."""


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
