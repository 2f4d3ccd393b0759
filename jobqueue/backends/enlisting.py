"""The registry of workers: who is up, written by each worker every few seconds and read by operators."""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta

from jobqueue.backends.operating import Operating
from jobqueue.models import Worker
from jobqueue.records import WorkerRecord, WorkerState

_COLUMNS = tuple(one.name for one in fields(WorkerRecord))
_FORGET_AFTER = timedelta(days=1)


class Enlisting(Operating):
    """Keeps one row for each worker."""

    def enlist(self, worker: WorkerRecord) -> None:
        def work() -> None:
            now, rows = self.now(), Worker.objects.using(self.alias)
            values = {name: getattr(worker, name) for name in _COLUMNS}
            row = Worker(**values | {"state": worker.state.value, "seen_at": now})
            rows.bulk_create(
                [row], update_conflicts=True, unique_fields=["owner"], update_fields=["state", "seen_at", "busy"]
            )
            rows.filter(seen_at__lt=now - _FORGET_AFTER).delete()

        self.operate(work)

    def dismiss(self, owner: str) -> None:
        self.operate(lambda: Worker.objects.using(self.alias).filter(pk=owner).delete())

    def workers(self) -> list[WorkerRecord]:
        with self.reporting():
            return [
                _record(row) for row in Worker.objects.using(self.alias).order_by("name", "owner").values(*_COLUMNS)
            ]


def _record(row: dict[str, object]) -> WorkerRecord:
    state, queues, types = row["state"], row["queues"], row["types"]
    lists = {
        "queues": tuple(queues) if isinstance(queues, list) else None,
        "types": tuple(types) if isinstance(types, list) else (),
    }
    return WorkerRecord(**row | lists | {"state": WorkerState(str(state))})  # type: ignore[arg-type]
