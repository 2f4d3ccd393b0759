"""An operator's verbs and the reading of jobs, written once in the ORM: rare, small, and the same on both databases."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any, TypeVar

from django.db import IntegrityError, transaction
from django.db.models import Count, Min, Q

from jobqueue.backends.base import Backend
from jobqueue.models import Attempt, Job
from jobqueue.models import Pause as PauseRow
from jobqueue.records import Ending, Handled, JobRecord, PastAttempt, Pause, QueueStats, Refusal, Scope
from jobqueue.states import ACTIVE, JobStatus, Move, sources

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
    def now(self) -> datetime:
        """Ask the clock that judges leases."""

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
            row["status"] = JobStatus(row["status"])
            row["timeout"] = _seconds(row["timeout"])
            return JobRecord(**row, history=tuple(map(_past, past)))

    def stats(self) -> list[QueueStats]:
        now = self.now()
        with self.reporting():
            rows = (
                Job.objects.using(self.alias)
                .filter(status__in=sorted(ACTIVE))
                .values("queue", "type")
                .annotate(
                    queued=Count("pk", filter=Q(status=JobStatus.QUEUED.value)),
                    delayed=Count("pk", filter=Q(status=JobStatus.QUEUED.value, scheduled_at__gt=now)),
                    in_progress=Count("pk", filter=Q(status=JobStatus.IN_PROGRESS.value)),
                    oldest_due_at=Min("scheduled_at", filter=Q(status=JobStatus.QUEUED.value, scheduled_at__lte=now)),
                )
                .order_by("queue", "type")
            )
            return [QueueStats(**row) for row in rows]

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
