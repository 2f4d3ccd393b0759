"""Reading jobs, counts and pauses, written once in the ORM: rare beside the cycle, and the same on both databases."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import fields
from datetime import timedelta
from math import isnan
from typing import Any

from django.db.models import Count, Min, Q, QuerySet

from jobqueue.backends.base import Backend
from jobqueue.backends.matching import in_status, matching
from jobqueue.errors import LONGEST_DURATION
from jobqueue.models import Attempt, Job
from jobqueue.models import Pause as PauseRow
from jobqueue.records import DeadLetters, Ending, Filter, JobRecord, PastAttempt, Pause, QueueStats, Scope
from jobqueue.states import JobStatus

#: A newer release, or another program, may know more of them.
_ENDINGS = frozenset(ending.value for ending in Ending)
_JOB_COLUMNS = tuple(one.name for one in fields(JobRecord) if one.name != "history")


class Reading(Backend):
    """What an operator may ask of jobs in a table."""

    alias: str

    @abstractmethod
    def reading(self) -> AbstractContextManager[None]:
        """Read whatever another program has written; where the table is missing, say in one sentence to migrate."""

    def get(self, job_id: str) -> JobRecord | None:
        with self.reading():
            row = Job.objects.using(self.alias).filter(pk=job_id).values(*_JOB_COLUMNS).first()
            if row is None:
                return None
            past = Attempt.objects.using(self.alias).filter(job_id=job_id).order_by("fence", "ended_at")
            return _record(row, tuple(map(_past, past)))

    def stats(self) -> list[QueueStats]:
        now = self.now()
        with self.reading():
            queued = in_status(self.alias, JobStatus.QUEUED).values("queue", "type")
            waiting = queued.annotate(
                all=Count("pk"),
                delayed=Count("pk", filter=Q(scheduled_at__gt=now)),
                oldest=Min("scheduled_at", filter=Q(scheduled_at__lte=now)),
            )
            running = in_status(self.alias, JobStatus.IN_PROGRESS).values("queue", "type").annotate(all=Count("pk"))
            by_name = {(row["queue"], row["type"]): row for row in waiting}
            busy = {(row["queue"], row["type"]): row["all"] for row in running}
            return [_stats(name, by_name.get(name), busy.get(name, 0)) for name in sorted({*by_name, *busy})]

    def dead_letters(self) -> list[DeadLetters]:
        with self.reading():
            rows = in_status(self.alias, JobStatus.DEAD_LETTER).values("queue", "type").annotate(count=Count("pk"))
            return [DeadLetters(**row) for row in rows.order_by("queue", "type")]

    def find(
        self, wanted: Filter, limit: int, after_id: str | None = None, newest_first: bool = False
    ) -> list[JobRecord]:
        with self.reading():
            return [_record(row) for row in self._page(wanted, limit, after_id, newest_first).values(*_JOB_COLUMNS)]

    def find_ids(self, wanted: Filter, limit: int, after_id: str | None = None) -> list[str]:
        with self.reading():
            return list(self._page(wanted, limit, after_id).values_list("pk", flat=True))

    def _page(self, wanted: Filter, limit: int, after_id: str | None, newest_first: bool = False) -> QuerySet[Job]:
        rows = matching(self.alias, wanted).order_by("-pk" if newest_first else "pk")
        if after_id is not None:
            rows = rows.filter(pk__lt=after_id) if newest_first else rows.filter(pk__gt=after_id)
        return rows[:limit]

    def count(self, wanted: Filter, cap: int | None = None) -> int:
        with self.reading():
            return matching(self.alias, wanted).order_by().values("pk")[:cap].count()

    def ahead_of(self, job: JobRecord, cap: int) -> int:
        sooner = Q(scheduled_at__lt=job.scheduled_at) | Q(scheduled_at=job.scheduled_at, pk__lt=job.id)
        better = Q(priority__lt=job.priority) | Q(sooner, priority=job.priority)
        with self.reading():
            due = in_status(self.alias, JobStatus.QUEUED).filter(better, priority__gt=0, scheduled_at__lte=self.now())
            for pause in self.pauses():
                due = due.exclude(**{pause.scope.value: pause.name})
            return due.values("pk")[:cap].count()

    def pauses(self) -> list[Pause]:
        with self.reading():
            known = [scope.value for scope in Scope]  # a newer release may have more of them
            rows = PauseRow.objects.using(self.alias).filter(scope__in=known).order_by("scope", "name")
            return [Pause(Scope(row.scope), row.name, row.reason, row.paused_at) for row in rows]


def ending_of(value: str) -> Ending:
    """Read how an attempt ended."""
    return Ending(value) if value in _ENDINGS else Ending.FAILED


def _seconds(value: float | None) -> timedelta | None:
    """Read a length of time; another program may have written one that is beyond all."""
    if value is None or isnan(value):
        return None
    longest = LONGEST_DURATION.total_seconds()
    return timedelta(seconds=max(-longest, min(value, longest)))


def _record(row: Mapping[str, Any], history: tuple[PastAttempt, ...] = ()) -> JobRecord:
    read = {"status": JobStatus(row["status"]), "timeout": _seconds(row["timeout"])}
    return JobRecord(**{**row, **read}, history=history)


def _stats(name: tuple[str, str], waiting: Mapping[str, Any] | None, running: int) -> QueueStats:
    if waiting is None:
        return QueueStats(*name, queued=0, delayed=0, in_progress=running, oldest_due_at=None)
    return QueueStats(*name, waiting["all"], waiting["delayed"], running, waiting["oldest"])


def _past(row: Attempt) -> PastAttempt:
    return PastAttempt(
        fence=row.fence,
        attempt=row.attempt,
        owner=row.owner,
        ending=ending_of(row.ending),
        error_class=row.error_class,
        message=row.message,
        traceback=row.traceback,
        duration=_seconds(row.duration),
        ended_at=row.ended_at,
    )
