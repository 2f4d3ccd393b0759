"""The reading of jobs in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice

from jobqueue.backends.memory.filters import lets_through
from jobqueue.backends.memory.tables import MemoryTables
from jobqueue.backends.ports import JobReader
from jobqueue.records import DeadLetterCount, Filter, JobRecord, Matches, QueueStats, Scope, Step
from jobqueue.states import ACTIVE, JobStatus


class MemoryJobReader(JobReader):
    """Reads jobs, under the lock of the tables."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    def get(self, job_id: str) -> JobRecord | None:
        with self._tables.lock:
            return self._tables.jobs.get(job_id)

    def stats(self) -> list[QueueStats]:
        with self._tables.lock:
            now = self._tables.now()
            groups: dict[tuple[str, str], list[JobRecord]] = {}
            for row in self._tables.jobs.values():
                if row.status in ACTIVE:
                    groups.setdefault((row.queue, row.type), []).append(row)
            return [_stats(queue, kind, rows, now) for (queue, kind), rows in sorted(groups.items())]

    def dead_letters(self) -> list[DeadLetterCount]:
        with self._tables.lock:
            dead = Counter(
                (row.queue, row.type) for row in self._tables.jobs.values() if row.status is JobStatus.DEAD_LETTER
            )
            return [DeadLetterCount(*name, count) for name, count in sorted(dead.items())]

    def find(
        self, wanted: Filter, limit: int, after_id: str | None = None, newest_first: bool = False
    ) -> list[JobRecord]:
        with self._tables.lock:
            rows = [self._tables.jobs[job_id] for job_id in sorted(self._tables.jobs, reverse=newest_first)]
        behind = (row for row in rows if after_id is None or (row.id < after_id if newest_first else row.id > after_id))
        return [replace(row, history=()) for row in islice((row for row in behind if lets_through(wanted, row)), limit)]

    def find_ids(self, wanted: Filter, limit: int, after_id: str | None = None) -> list[str]:
        return [row.id for row in self.find(wanted, limit, after_id)]

    def count(self, wanted: Filter, cap: int | None = None) -> int:
        found = len(self.find(wanted, len(self._tables.jobs)))
        return found if cap is None else min(found, cap)

    def search(self, wanted: Filter, cap: int, oldest_first: bool = False, before_id: str | None = None) -> Matches:
        with self._tables.lock:
            searched = len(self._tables.jobs)
            found = self.find(wanted, searched, newest_first=not oldest_first)
            ids = [row.id for row in found if before_id is None or row.id < before_id][: cap + 1]
        return Matches(ids[:cap], len(ids), cap, searched)

    def queues(self, limit: int) -> list[str]:
        with self._tables.lock:
            found: dict[JobStatus, set[str]] = {}
            for row in self._tables.jobs.values():
                found.setdefault(row.status, set()).add(row.queue)
        found.pop(JobStatus.COMPLETED, None)
        return sorted({queue for queues in found.values() for queue in sorted(queues)[:limit]})

    def walk(self, wanted: Filter, most: int, after_id: str | None = None) -> Step:
        with self._tables.lock:
            part = sorted(job_id for job_id in self._tables.jobs if after_id is None or job_id > after_id)[:most]
            ids = tuple(job_id for job_id in part if lets_through(wanted, self._tables.jobs[job_id]))
        return Step(ids, part[-1] if len(part) == most else None)

    def ahead_of(self, job: JobRecord, cap: int) -> int:
        def place(row: JobRecord) -> tuple[int, datetime, str]:
            return row.priority, row.scheduled_at, row.id

        with self._tables.lock:
            due = [
                row
                for row in self._tables.jobs.values()
                if row.status is JobStatus.QUEUED and row.scheduled_at <= self._tables.now()
            ]
            free = [
                row
                for row in due
                if not {(Scope.QUEUE, row.queue), (Scope.TYPE, row.type)} & self._tables.pauses.keys()
            ]
            return min(cap, sum(place(row) < place(job) for row in free))


def _stats(queue: str, kind: str, rows: Sequence[JobRecord], now: datetime) -> QueueStats:
    queued = [row for row in rows if row.status is JobStatus.QUEUED]
    due = [row.scheduled_at for row in queued if row.scheduled_at <= now]
    return QueueStats(queue, kind, len(queued), len(queued) - len(due), len(rows) - len(queued), min(due, default=None))
