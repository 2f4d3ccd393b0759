"""Retention in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any

from jobqueue.backends.memory.tables import MemoryTables
from jobqueue.backends.ports.retention import Place, Retention
from jobqueue.clock import to_text
from jobqueue.policy.retention import ENDED, EndedJob
from jobqueue.records import JobRecord


class MemoryRetention(Retention):
    """Walks over the jobs by id. The history of a job is part of it."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    def walk(self, after: Place, most: int) -> tuple[list[EndedJob], Place]:
        with self._tables.lock:
            ids = sorted((one for one in self._tables.jobs if after is None or one < str(after)), reverse=True)[:most]
            rows = [self._tables.jobs[job_id] for job_id in ids]
        return [_ended(row) for row in rows if row.status in ENDED], ids[-1] if len(ids) == most else None

    def before(self, job_id: str) -> Place:
        return job_id

    def rows(self, ids: Sequence[str]) -> list[dict[str, Any]]:
        with self._tables.lock:
            found = [self._tables.jobs[job_id] for job_id in sorted(ids) if job_id in self._tables.jobs]
            return [_plain(row) for row in found]

    def prune(self, jobs: Sequence[EndedJob]) -> list[EndedJob]:
        with self._tables.atomic():
            rows = {job.id: self._tables.jobs.get(job.id) for job in jobs}
            same = [job for job in jobs if (row := rows[job.id]) is not None and _ended(row) == job]
            for job in same:
                self._tables.delete(job.id)
            return same

    def prune_beside(self, orders: timedelta, errors: timedelta) -> int:
        return 0


def _ended(row: JobRecord) -> EndedJob:
    return EndedJob(row.id, row.id, row.type, row.queue, row.status.value, row.completed_at or row.updated_at)


def _plain(row: Any) -> dict[str, Any]:
    found = {one.name: _written(getattr(row, one.name)) for one in fields(row)}
    return found | ({"history": [_plain(one) for one in row.history]} if "history" in found else {})


def _written(value: Any) -> Any:
    if isinstance(value, timedelta):
        return value.total_seconds()
    return to_text(value) if isinstance(value, datetime) else value
