"""An operator's verbs and the reading of jobs, written once in the ORM: rare, small, and the same on both databases."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any, TypeVar

from django.db import IntegrityError, transaction
from django.db.models import CharField, Count, Func, Min, Q, QuerySet

from jobqueue.backends.base import Backend
from jobqueue.models import Attempt, Job
from jobqueue.models import Pause as PauseRow
from jobqueue.records import (
    DeadLetters,
    Ending,
    Filter,
    Handled,
    JobRecord,
    PastAttempt,
    Pause,
    QueueStats,
    Refusal,
    Scope,
)
from jobqueue.states import JobStatus, Move, sources

T = TypeVar("T")

_JOB_COLUMNS = tuple(one.name for one in fields(JobRecord) if one.name != "history")

_RUNNING = {JobStatus.IN_PROGRESS.value}


class Operating(Backend):
    """What an operator may do to jobs in a table. Each verb is one transaction that locks its rows in order of id."""

    alias: str

    @abstractmethod
    def unit(self, work: Callable[[], T]) -> T:
        """Do a piece of work that stores all or nothing, as often as the database asks for."""

    @abstractmethod
    def write(self) -> AbstractContextManager[object]:
        """Open a transaction that may write from its first statement on, or a savepoint in the caller's."""

    @abstractmethod
    def reporting(self) -> AbstractContextManager[None]:
        """Turn a missing table into one sentence that tells to migrate."""

    def operate(self, work: Callable[[], T]) -> T:
        def in_transaction() -> T:
            with self.write():
                return work()

        with self.reporting():
            return self.unit(in_transaction)

    def _locked(self, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        rows = (
            Job.objects.using(self.alias)
            .filter(pk__in=ids)
            .order_by("pk")
            .select_for_update()
            .values("pk", "status", "unique_key")
        )
        return {row["pk"]: dict(row) for row in rows}

    def get(self, job_id: str) -> JobRecord | None:
        with self.reporting():
            row = Job.objects.using(self.alias).filter(pk=job_id).values(*_JOB_COLUMNS).first()
            if row is None:
                return None
            past = Attempt.objects.using(self.alias).filter(job_id=job_id).order_by("fence", "ended_at")
            return _record(row, tuple(map(_past, past)))

    def stats(self) -> list[QueueStats]:
        now = self.now()
        with self.reporting():
            queued = self._in(JobStatus.QUEUED).values("queue", "type")
            waiting = queued.annotate(
                all=Count("pk"),
                delayed=Count("pk", filter=Q(scheduled_at__gt=now)),
                oldest=Min("scheduled_at", filter=Q(scheduled_at__lte=now)),
            )
            running = self._in(JobStatus.IN_PROGRESS).values("queue", "type").annotate(all=Count("pk"))
            by_name = {(row["queue"], row["type"]): row for row in waiting}
            busy = {(row["queue"], row["type"]): row["all"] for row in running}
            return [_stats(name, by_name.get(name), busy.get(name, 0)) for name in sorted({*by_name, *busy})]

    def dead_letters(self) -> list[DeadLetters]:
        with self.reporting():
            rows = self._in(JobStatus.DEAD_LETTER).values("queue", "type").annotate(count=Count("pk"))
            return [DeadLetters(**row) for row in rows.order_by("queue", "type")]

    def _in(self, status: JobStatus) -> QuerySet[Job]:
        # Written out: with a parameter in its place SQLite would not use the indexes that hold this status alone.
        literal = Func(template=f"'{status.value}'", output_field=CharField())
        return Job.objects.using(self.alias).filter(status=literal)

    def find(
        self, wanted: Filter, limit: int, after_id: str | None = None, newest_first: bool = False
    ) -> list[JobRecord]:
        with self.reporting():
            return [_record(row) for row in self._page(wanted, limit, after_id, newest_first).values(*_JOB_COLUMNS)]

    def find_ids(self, wanted: Filter, limit: int, after_id: str | None = None) -> list[str]:
        with self.reporting():
            return list(self._page(wanted, limit, after_id).values_list("pk", flat=True))

    def _page(self, wanted: Filter, limit: int, after_id: str | None, newest_first: bool = False) -> QuerySet[Job]:
        rows = self._matching(wanted).order_by("-pk" if newest_first else "pk")
        if after_id is not None:
            rows = rows.filter(pk__lt=after_id) if newest_first else rows.filter(pk__gt=after_id)
        return rows[:limit]

    def count(self, wanted: Filter, cap: int | None = None) -> int:
        with self.reporting():
            return self._matching(wanted).order_by().values("pk")[:cap].count()

    def _matching(self, wanted: Filter) -> QuerySet[Job]:
        rows = self._in(*wanted.statuses) if len(wanted.statuses) == 1 else Job.objects.using(self.alias).all()
        for column, values in (("status", wanted.statuses), ("type", wanted.types), ("queue", wanted.queues)):
            if values:
                rows = rows.filter(**{f"{column}__in": sorted(values)})
        if wanted.tenant is not None:
            rows = rows.filter(tenant=wanted.tenant)
        if wanted.error:
            rows = rows.filter(error__icontains=wanted.error)
        if wanted.created_after is not None:
            rows = rows.filter(created_at__gte=wanted.created_after)
        if wanted.created_before is not None:
            rows = rows.filter(created_at__lt=wanted.created_before)
        return rows.filter(pk__startswith=wanted.id_prefix) if wanted.id_prefix else rows

    def ahead_of(self, job: JobRecord, cap: int) -> int:
        sooner = Q(scheduled_at__lt=job.scheduled_at) | Q(scheduled_at=job.scheduled_at, pk__lt=job.id)
        better = Q(priority__lt=job.priority) | Q(sooner, priority=job.priority)
        with self.reporting():
            due = self._in(JobStatus.QUEUED).filter(better, priority__gt=0, scheduled_at__lte=self.now())
            for pause in self.pauses():
                due = due.exclude(**{pause.scope.value: pause.name})
            return due.values("pk")[:cap].count()

    def retry(self, ids: Sequence[str]) -> Handled:
        return self.operate(lambda: self._retry(ids))

    def _retry(self, ids: Sequence[str]) -> Handled:
        rows, now = self._locked(ids), self.now()
        done, refused = [], _missing(ids, rows)
        for job_id, row in rows.items():
            if JobStatus(row["status"]) not in sources(Move.REVIVE):
                refused.append(Refusal(job_id, f"is {row['status']}; only failed jobs and dead letters are retried"))
            elif self._revive(job_id, now):
                done.append(job_id)
            else:
                refused.append(Refusal(job_id, f"a newer job holds its unique key {row['unique_key']!r}"))
        return Handled(tuple(done), tuple(refused))

    def _revive(self, job_id: str, now: datetime) -> bool:
        """Put one job back; a savepoint each, for a newer job may hold its unique key."""
        try:
            with transaction.atomic(using=self.alias):
                Job.objects.using(self.alias).filter(pk=job_id).update(
                    status=JobStatus.QUEUED.value,
                    attempts=0,
                    crash_count=0,
                    error=None,
                    error_fingerprint=None,
                    end_reason=None,
                    result=None,
                    progress=None,
                    cancel_requested_at=None,
                    expires_at=None,  # else a retry of what came too late would come too late again
                    scheduled_at=now,
                    started_at=None,
                    completed_at=None,
                    lease_owner=None,
                    lease_until=None,
                    updated_at=now,
                )
        except IntegrityError:
            return False
        return True

    def cancel(self, ids: Sequence[str]) -> Handled:
        return self.operate(lambda: self._cancel(ids))

    def _cancel(self, ids: Sequence[str]) -> Handled:
        rows, now = self._locked(ids), self.now()
        refused = _missing(ids, rows)
        refused += [
            Refusal(job_id, f"is {row['status']} already")
            for job_id, row in rows.items()
            if JobStatus(row["status"]) not in sources(Move.CANCEL)
        ]
        live = [job_id for job_id, row in rows.items() if JobStatus(row["status"]) in sources(Move.CANCEL)]
        mine = Job.objects.using(self.alias).filter(pk__in=live)
        mine.filter(status=JobStatus.QUEUED.value).update(
            status=JobStatus.FAILED.value, end_reason="cancelled", completed_at=now, updated_at=now
        )
        mine.filter(status=JobStatus.IN_PROGRESS.value, cancel_requested_at=None).update(
            cancel_requested_at=now, updated_at=now
        )
        return Handled(tuple(live), tuple(refused))

    def purge(self, ids: Sequence[str]) -> Handled:
        return self.operate(lambda: self._purge(ids))

    def _purge(self, ids: Sequence[str]) -> Handled:
        rows = self._locked(ids)
        running = [job_id for job_id, row in rows.items() if row["status"] in _RUNNING]
        gone = [job_id for job_id in rows if job_id not in running]
        Attempt.objects.using(self.alias).filter(job_id__in=gone).delete()
        Job.objects.using(self.alias).filter(pk__in=gone).delete()
        refused = _missing(ids, rows) + [Refusal(job_id, "is running; cancel it first") for job_id in running]
        return Handled(tuple(gone), tuple(refused))

    def pause(self, scope: Scope, name: str, reason: str = "") -> bool:
        def work() -> bool:
            _row, made = PauseRow.objects.using(self.alias).get_or_create(
                scope=scope.value, name=name, defaults={"reason": reason, "paused_at": self.now()}
            )
            return made

        return self.operate(work)

    def resume(self, scope: Scope, name: str) -> bool:
        def work() -> bool:
            return bool(PauseRow.objects.using(self.alias).filter(scope=scope.value, name=name).delete()[0])

        return self.operate(work)

    def pauses(self) -> list[Pause]:
        with self.reporting():
            rows = PauseRow.objects.using(self.alias).order_by("scope", "name")
            return [Pause(Scope(row.scope), row.name, row.reason, row.paused_at) for row in rows]


def _missing(ids: Iterable[str], found: dict[str, Any]) -> list[Refusal]:
    return [Refusal(job_id, "does not exist") for job_id in ids if job_id not in found]


def _seconds(value: float | None) -> timedelta | None:
    return None if value is None else timedelta(seconds=value)


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
        ending=Ending(row.ending),
        error_class=row.error_class,
        message=row.message,
        traceback=row.traceback,
        duration=_seconds(row.duration),
        ended_at=row.ended_at,
    )
