"""The reading of the queue's health, in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from datetime import timedelta
from itertools import groupby

from jobqueue.backends.memory.tables import MemoryTables
from jobqueue.backends.ports import HealthReader
from jobqueue.policy.stretches import shared
from jobqueue.records import COUNTED_TO, MOST_GROUPS, DeadJob, DeadLetterCount, JobRecord, LapsedLeases, QuietJob
from jobqueue.states import JobStatus


class MemoryHealthReader(HealthReader):
    """Looks through the rows that the lock keeps still."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    def _in(self, status: JobStatus) -> list[JobRecord]:
        with self._tables.lock:
            return [row for row in self._tables.jobs.values() if row.status is status]

    def dead_letters(self, cap: int = COUNTED_TO, most: int = MOST_GROUPS) -> list[DeadLetterCount]:
        counts = sorted(Counter((row.queue, row.type) for row in self._in(JobStatus.DEAD_LETTER)).items())[:most]
        each = shared(cap, len(counts))
        return [DeadLetterCount(*name, min(count, each), count > each) for name, count in counts]

    def critical_dead(self, types: Collection[str], limit: int = 100) -> list[DeadJob]:
        dead = sorted((row for row in self._in(JobStatus.DEAD_LETTER) if row.type in types), key=lambda row: row.id)
        dead.sort(key=lambda row: (row.queue, row.type))
        return [DeadJob(row.id, row.type, row.queue, row.completed_at) for row in reversed(dead)][:limit]

    def lapsed_leases(self, grace: timedelta, cap: int = COUNTED_TO) -> list[LapsedLeases]:
        before = self._tables.now() - grace
        ends = [(row.lease_until, row.lease_owner or "") for row in self._in(JobStatus.IN_PROGRESS) if row.lease_until]
        found: dict[str, LapsedLeases] = {}
        for until, owner in sorted(one for one in ends if one[0] < before)[:cap]:
            known = found.get(owner, LapsedLeases(owner, 0, until))
            found[owner] = known._replace(jobs=known.jobs + 1)
        return list(found.values())

    def quiet_jobs(self, silence: timedelta, limit: int = 100) -> list[QuietJob]:
        before = self._tables.now() - silence
        quiet = [
            QuietJob(row.id, row.type, row.queue, row.lease_owner or "", row.updated_at)
            for row in self._in(JobStatus.IN_PROGRESS)
            if row.progress is not None and row.started_at and row.started_at < row.updated_at < before
        ]
        return sorted(quiet, key=lambda one: one.since)[:limit]

    def tenants(self, queue: str, job_type: str, sample: int = 25) -> dict[str, int]:
        now = self._tables.now()
        due = sorted(
            (row.priority, row.scheduled_at, row.id, row.tenant or "")
            for row in self._in(JobStatus.QUEUED)
            if (row.queue, row.type) == (queue, job_type) and row.scheduled_at <= now
        )
        found: Counter[str] = Counter()
        for _priority, rows in groupby(due, key=lambda row: row[0]):
            names = [row[-1] for row in rows]
            found.update(names[:sample] + names[-sample:])
        return dict(found)

    def clock_skew(self) -> timedelta:
        return timedelta(0)
