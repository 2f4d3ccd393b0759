"""The registry of workers, in memory."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from jobqueue.backends.memory.tables import MemoryTables
from jobqueue.backends.ports import WorkerRegistry
from jobqueue.records import WorkerRecord, WorkerRequest


class MemoryWorkerRegistry(WorkerRegistry):
    """Keeps the workers of this process."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables
        self._workers: dict[str, WorkerRecord] = {}

    def enlist(self, worker: WorkerRecord) -> WorkerRequest | None:
        with self._tables.lock:
            now, before = self._tables.now(), self._workers.get(worker.owner)
            asked = before.asked if before else None
            self._workers[worker.owner] = replace(worker, seen_at=now, asked=asked)
            day_ago = now - timedelta(days=1)
            self._workers = {owner: one for owner, one in self._workers.items() if one.seen_at > day_ago}
            return asked

    def dismiss(self, owner: str) -> None:
        with self._tables.lock:
            self._workers.pop(owner, None)

    def ask(self, owner: str, request: WorkerRequest | None) -> bool:
        with self._tables.lock:
            if owner not in self._workers:
                return False
            self._workers[owner] = replace(self._workers[owner], asked=request)
            return True

    def all(self) -> list[WorkerRecord]:
        with self._tables.lock:
            return sorted(self._workers.values(), key=lambda one: (one.name, one.owner))
