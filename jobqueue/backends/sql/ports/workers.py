"""The registry of workers: one row each, written by the worker every few seconds."""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta
from typing import Any

from django.db.models import QuerySet

from jobqueue.backends.ports import WorkerRegistry
from jobqueue.backends.sql.session import Session
from jobqueue.models import Worker
from jobqueue.records import WorkerRecord, WorkerState
from jobqueue.records.outcome import MESSAGE_LIMIT, storable

_COLUMNS = tuple(one.name for one in fields(WorkerRecord))
_STATES = frozenset(state.value for state in WorkerState)
_FORGET_AFTER = timedelta(days=1)


class SqlWorkerRegistry(WorkerRegistry):
    """Keeps one row for each worker."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def enlist(self, worker: WorkerRecord) -> None:
        def work() -> None:
            now, rows = self._session.now(), self._session.rows(Worker)
            news = {"state": worker.state.value, "seen_at": now, "busy": worker.busy, "left_out": worker.left_out}
            if rows.filter(pk=worker.owner).exists():
                _free(rows.filter(pk=worker.owner)).update(**news)
            else:
                values = {name: getattr(worker, name) for name in _COLUMNS}
                rows.bulk_create([Worker(**values | news)], ignore_conflicts=True)
            _free(rows.filter(seen_at__lt=now - _FORGET_AFTER)).delete()

        self._session.transact(work)

    def dismiss(self, owner: str) -> None:
        self._session.transact(lambda: _free(self._session.rows(Worker).filter(pk=owner)).delete())

    def all(self) -> list[WorkerRecord]:
        with self._session.reading():
            return [_record(row) for row in self._session.rows(Worker).order_by("name", "owner").values(*_COLUMNS)]


def _free(rows: QuerySet[Worker]) -> QuerySet[Worker]:
    """Leave out rows that others have locked, so that no job waits or loses its lease because of this."""
    owners = list(rows.select_for_update(skip_locked=True).values_list("pk", flat=True))
    return rows.model._default_manager.using(rows.db).filter(pk__in=owners)


def _record(row: dict[str, Any]) -> WorkerRecord:
    """Read a row that a newer release, or another program, may have written."""
    queues, left_out = row["queues"], row["left_out"]
    read = {
        "state": WorkerState(row["state"]) if row["state"] in _STATES else WorkerState.RUNNING,
        "queues": _texts(queues) if isinstance(queues, list) else None,
        "types": _texts(row["types"]),
        "left_out": _left_out(left_out) if isinstance(left_out, dict) else {},
    }
    return WorkerRecord(**row | read)


def _left_out(reasons: dict[str, Any]) -> dict[str, str]:
    """Read which jobs a worker leaves out. JSON may hold text that has no UTF-8."""
    return {storable(job_id, MESSAGE_LIMIT): storable(str(why), MESSAGE_LIMIT) for job_id, why in reasons.items()}


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()
