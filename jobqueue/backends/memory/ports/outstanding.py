"""The reading of queued and running jobs, in memory."""

from __future__ import annotations

from datetime import UTC, datetime

from jobqueue.backends.memory.tables import MemoryTables
from jobqueue.backends.ports import OutstandingReader
from jobqueue.records import JobRecord
from jobqueue.records.outstanding import Behind, QueuedJob, RunningJob
from jobqueue.states import JobStatus

_LAST = datetime.max.replace(tzinfo=UTC)


class MemoryOutstandingReader(OutstandingReader):
    """Looks through the rows that the lock keeps still."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    def running(self, limit: int) -> list[RunningJob]:
        rows = sorted(self._in(JobStatus.IN_PROGRESS), key=lambda row: row.lease_until or _LAST)
        return [
            RunningJob(
                id=row.id,
                type=row.type,
                queue=row.queue,
                owner=row.lease_owner or "",
                attempts=row.attempts,
                started_at=row.started_at,
                updated_at=row.updated_at,
                lease_until=row.lease_until,
                cancel_requested_at=row.cancel_requested_at,
                timeout=row.timeout,
                reports=row.progress is not None,
            )
            for row in rows[:limit]
        ]

    def queued(self, limit: int, after: Behind | None = None) -> list[QueuedJob]:
        found = sorted((_place(row), row) for row in self._in(JobStatus.QUEUED))
        if after is not None:
            found = [one for one in found if _is_behind(one[0], after)]
        return [
            QueuedJob(
                id=row.id,
                type=row.type,
                queue=row.queue,
                tenant=row.tenant or "",
                payload=self._tables.texts[row.id][0],
                payload_version=row.payload_version,
                created_at=row.created_at,
                place=place,
            )
            for place, row in found[:limit]
        ]

    def _in(self, status: JobStatus) -> list[JobRecord]:
        with self._tables.lock:
            return [row for row in self._tables.jobs.values() if row.status is status]


def _place(row: JobRecord) -> Behind:
    return Behind(row.queue, row.type, row.priority, row.scheduled_at, row.id)


def _is_behind(place: Behind, after: Behind) -> bool:
    if after.due is None:
        return place[:2] > after[:2]
    return tuple(place) > tuple(after)
