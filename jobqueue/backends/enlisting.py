"""The registry of workers: who is up, written by each worker every few seconds and read by operators."""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta
from typing import Any

from django.db.models import QuerySet

from jobqueue.backends.operating import Operating
from jobqueue.models import Worker
from jobqueue.records import WorkerRecord, WorkerState

_COLUMNS = tuple(one.name for one in fields(WorkerRecord))
_STATES = frozenset(state.value for state in WorkerState)
_FORGET_AFTER = timedelta(days=1)


class Enlisting(Operating):
    """Keeps one row for each worker."""

    def enlist(self, worker: WorkerRecord) -> None:
        def work() -> None:
            now, rows = self.now(), Worker.objects.using(self.alias)
            news = {"state": worker.state.value, "seen_at": now, "busy": worker.busy, "left_out": worker.left_out}
            if rows.filter(pk=worker.owner).exists():
                _free(rows.filter(pk=worker.owner)).update(**news)
            else:
                values = {name: getattr(worker, name) for name in _COLUMNS}
                rows.bulk_create([Worker(**values | news)], ignore_conflicts=True)
            _free(rows.filter(seen_at__lt=now - _FORGET_AFTER)).delete()

        self.operate(work)

    def dismiss(self, owner: str) -> None:
        self.operate(lambda: _free(Worker.objects.using(self.alias).filter(pk=owner)).delete())

    def workers(self) -> list[WorkerRecord]:
        with self.reading():
            return [
                _record(row) for row in Worker.objects.using(self.alias).order_by("name", "owner").values(*_COLUMNS)
            ]


def _free(rows: QuerySet[Worker]) -> QuerySet[Worker]:
    """Leave out what others have locked: no job shall wait, or lose its lease, for the sake of news."""
    owners = list(rows.select_for_update(skip_locked=True).values_list("pk", flat=True))
    return rows.model._default_manager.using(rows.db).filter(pk__in=owners)


def _record(row: dict[str, Any]) -> WorkerRecord:
    """Read a row that a newer release, or another program, may have written."""
    queues, left_out = row["queues"], row["left_out"]
    read = {
        "state": WorkerState(row["state"]) if row["state"] in _STATES else WorkerState.RUNNING,
        "queues": _texts(queues) if isinstance(queues, list) else None,
        "types": _texts(row["types"]),
        "left_out": {key: str(why) for key, why in left_out.items()} if isinstance(left_out, dict) else {},
    }
    return WorkerRecord(**row | read)


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()
