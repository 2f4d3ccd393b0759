"""The registry of workers: a row for each worker, which the worker writes every few seconds."""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta
from typing import Any

from django.db.models import Case, QuerySet, Value, When

from jobqueue.backends.ports import WorkerRegistry
from jobqueue.backends.sql.session import Session
from jobqueue.models import Worker
from jobqueue.records import WorkerRecord, WorkerRequest, WorkerState
from jobqueue.records.outcome import MESSAGE_LIMIT, storable

_COLUMNS = tuple(one.name for one in fields(WorkerRecord))
_STATES = frozenset(state.value for state in WorkerState)
_REQUESTS = tuple(WorkerRequest)
_ASKED = frozenset(request.value for request in _REQUESTS)
#: A worker reads what it was asked as a number. The text itself may be anything, even bytes that no driver decodes.
_PLACE_OF_REQUEST = Case(
    *(When(asked=request.value, then=Value(place)) for place, request in enumerate(_REQUESTS)), default=Value(-1)
)
_FORGET_AFTER = timedelta(days=1)


class SqlWorkerRegistry(WorkerRegistry):
    """Keeps one row for each worker."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def enlist(self, worker: WorkerRecord) -> WorkerRequest | None:
        def work() -> WorkerRequest | None:
            now, rows = self._session.now(), self._session.rows(Worker)
            news = {"state": worker.state.value, "seen_at": now, "busy": worker.busy, "left_out": worker.left_out}
            place = rows.filter(pk=worker.owner).values_list(_PLACE_OF_REQUEST, flat=True).first()
            if place is not None:
                _free(rows.filter(pk=worker.owner)).update(**news)
            else:
                values = {name: getattr(worker, name) for name in _COLUMNS}
                rows.bulk_create([Worker(**values | news | {"asked": None})], ignore_conflicts=True)
            _free(rows.filter(seen_at__lt=now - _FORGET_AFTER)).delete()
            return _REQUESTS[place] if place is not None and place >= 0 else None

        return self._session.transact(work)

    def dismiss(self, owner: str) -> None:
        self._session.transact(lambda: _free(self._session.rows(Worker).filter(pk=owner)).delete())

    def ask(self, owner: str, request: WorkerRequest | None) -> bool:
        rows, value = self._session.rows(Worker), None if request is None else request.value
        return self._session.transact(lambda: rows.filter(pk=owner).update(asked=value) == 1)

    def all(self) -> list[WorkerRecord]:
        with self._session.reading():
            return [_record(row) for row in self._session.rows(Worker).order_by("name", "owner").values(*_COLUMNS)]


def _free(rows: QuerySet[Worker]) -> QuerySet[Worker]:
    """Lock and return rows, except locked ones: a worker that waited here could lose its leases."""
    owners = list(rows.select_for_update(skip_locked=True).values_list("pk", flat=True))
    return rows.model._default_manager.using(rows.db).filter(pk__in=owners)


def _record(row: dict[str, Any]) -> WorkerRecord:
    """Return a row as a record. A newer release, or another program, may have written it."""
    queues, left_out = row["queues"], row["left_out"]
    read = {
        "state": WorkerState(row["state"]) if row["state"] in _STATES else WorkerState.RUNNING,
        "queues": _texts(queues) if isinstance(queues, list) else None,
        "types": _texts(row["types"]),
        "asked": WorkerRequest(row["asked"]) if row["asked"] in _ASKED else None,
        "left_out": _left_out(left_out) if isinstance(left_out, dict) else {},
        "lock": row["lock"] or "",
    }
    return WorkerRecord(**row | read)


def _left_out(reasons: dict[str, Any]) -> dict[str, str]:
    """Return the jobs that a worker leaves out. Text from JSON may contain lone surrogates, which are replaced."""
    return {storable(job_id, MESSAGE_LIMIT): storable(str(why), MESSAGE_LIMIT) for job_id, why in reasons.items()}


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()
