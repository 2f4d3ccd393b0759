"""The reading and counting of jobs, with the ORM because it is rare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from django.db.models import Count, Min, Q, QuerySet

from jobqueue.backends.ports import JobReader
from jobqueue.backends.sql.filters import in_status, matching, without_paused
from jobqueue.backends.sql.ports.statements import queues as queue_statements
from jobqueue.backends.sql.search.matches import matches_of
from jobqueue.backends.sql.search.plan import count_by_status, plan_of
from jobqueue.backends.sql.search.step import step_of
from jobqueue.backends.sql.session import Session
from jobqueue.durations import from_seconds
from jobqueue.models import Attempt, Job
from jobqueue.records import (
    DeadLetterCount,
    Ending,
    Filter,
    JobRecord,
    MatchCount,
    Matches,
    PastAttempt,
    QueueStats,
    Step,
)
from jobqueue.states import JobStatus

#: The known endings. A newer release, or another program, may have stored others.
_ENDINGS = frozenset(ending.value for ending in Ending)
_JOB_COLUMNS = tuple(one.name for one in fields(JobRecord) if one.name != "history")


class SqlJobReader(JobReader):
    """Reads jobs from a table."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def get(self, job_id: str) -> JobRecord | None:
        with self._session.reading():
            row = self._session.rows(Job).filter(pk=job_id).values(*_JOB_COLUMNS).first()
            if row is None:
                return None
            past = self._session.rows(Attempt).filter(job_id=job_id).order_by("fence", "ended_at")
            return _record(row, tuple(map(_past, past)))

    def stats(self) -> list[QueueStats]:
        now = self._session.now()
        with self._session.reading():
            queued = in_status(self._session.alias, JobStatus.QUEUED).values("queue", "type")
            waiting = queued.annotate(
                all=Count("pk"),
                delayed=Count("pk", filter=Q(scheduled_at__gt=now)),
                oldest=Min("scheduled_at", filter=Q(scheduled_at__lte=now)),
            )
            running = (
                in_status(self._session.alias, JobStatus.IN_PROGRESS).values("queue", "type").annotate(all=Count("pk"))
            )
            by_name = {(row["queue"], row["type"]): row for row in waiting}
            busy = {(row["queue"], row["type"]): row["all"] for row in running}
            return [_stats(name, by_name.get(name), busy.get(name, 0)) for name in sorted({*by_name, *busy})]

    def dead_letters(self) -> list[DeadLetterCount]:
        with self._session.reading():
            rows = (
                in_status(self._session.alias, JobStatus.DEAD_LETTER)
                .values("queue", "type")
                .annotate(count=Count("pk"))
            )
            return [DeadLetterCount(**row) for row in rows.order_by("queue", "type")]

    def find(
        self, wanted: Filter, limit: int, after_id: str | None = None, newest_first: bool = False
    ) -> list[JobRecord]:
        with self._session.reading():
            return [_record(row) for row in self._page(wanted, limit, after_id, newest_first).values(*_JOB_COLUMNS)]

    def find_ids(self, wanted: Filter, limit: int, after_id: str | None = None) -> list[str]:
        with self._session.reading():
            return list(self._page(wanted, limit, after_id).values_list("pk", flat=True))

    def _page(self, wanted: Filter, limit: int, after_id: str | None, newest_first: bool = False) -> QuerySet[Job]:
        rows = matching(self._session.alias, wanted).order_by("-pk" if newest_first else "pk")
        if after_id is not None:
            rows = rows.filter(pk__lt=after_id) if newest_first else rows.filter(pk__gt=after_id)
        return rows[:limit]

    def count(self, wanted: Filter, cap: int | None = None) -> int:
        with self._session.reading():
            return matching(self._session.alias, wanted).order_by().values("pk")[:cap].count()

    def search(self, wanted: Filter, cap: int, oldest_first: bool = False, before_id: str | None = None) -> Matches:
        with self._session.reading():
            return matches_of(self._session, plan_of(self._session, wanted, before_id), cap, oldest_first)

    def walk(self, wanted: Filter, most: int, after_id: str | None = None) -> Step:
        with self._session.reading():
            return step_of(self._session.alias, wanted, most, after_id)

    def count_matches(self, wanted: Filter, cap: int) -> MatchCount:
        with self._session.reading():
            told = count_by_status(self._session.alias, wanted, cap)
        return super().count_matches(wanted, cap) if told is None else MatchCount(min(told, cap), told > cap, False)

    def queues(self, limit: int) -> list[str]:
        with self._session.reading(), self._session.connection.cursor() as cursor:
            cursor.execute(queue_statements.NAMED, {"limit": limit})
            return sorted({queue for (queue,) in cursor.fetchall()})

    def ahead_of(self, job: JobRecord, cap: int) -> int:
        sooner = Q(scheduled_at__lt=job.scheduled_at) | Q(scheduled_at=job.scheduled_at, pk__lt=job.id)
        better = Q(priority__lt=job.priority) | Q(sooner, priority=job.priority)
        with self._session.reading():
            due = in_status(self._session.alias, JobStatus.QUEUED).filter(
                better, priority__gt=0, scheduled_at__lte=self._session.now()
            )
            return without_paused(self._session.alias, due).values("pk")[:cap].count()


def ending_of(value: str) -> Ending:
    """Return a stored ending, or FAILED for an unknown one."""
    return Ending(value) if value in _ENDINGS else Ending.FAILED


def _record(row: Mapping[str, Any], history: tuple[PastAttempt, ...] = ()) -> JobRecord:
    read = {"status": JobStatus(row["status"]), "timeout": from_seconds(row["timeout"])}
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
        duration=from_seconds(row.duration),
        ended_at=row.ended_at,
        release=row.release or "",
    )
