"""Schedules in memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from jobqueue.backends.memory.drafts import MemoryDrafts
from jobqueue.backends.memory.ports.jobs import MemoryJobReader
from jobqueue.backends.memory.tables import MemoryTables
from jobqueue.backends.ports.schedules import Schedules
from jobqueue.records import Draft, DraftReceipt, JobRecord
from jobqueue.records.schedule import DueSchedules, Firing, ScheduleRecord


class MemorySchedules(Schedules):
    """Keeps the schedules of this process."""

    def __init__(self, tables: MemoryTables, drafts: MemoryDrafts, jobs: MemoryJobReader) -> None:
        self._tables = tables
        self._drafts = drafts
        self._jobs = jobs

    def all(self, limit: int = 20_000) -> list[ScheduleRecord]:
        with self._tables.lock:
            return sorted(self._tables.schedules.values(), key=lambda one: one.name)[:limit]

    def get(self, name: str) -> ScheduleRecord | None:
        found = [one for one in self.all() if one.name == name] or [one for one in self.all() if one.id == name]
        return found[0] if found else None

    def add(self, schedule: ScheduleRecord) -> bool:
        with self._tables.atomic():
            if any(one.name == schedule.name for one in self._tables.schedules.values()):
                return False
            self._tables.schedules[schedule.id] = schedule
            return True

    def change(self, schedule: ScheduleRecord, **changes: Any) -> bool:
        with self._tables.atomic():
            row = self._tables.schedules.get(schedule.id)
            if row is None or row.revision != schedule.revision:
                return False
            changes["last_slot_at"] = max(row.last_slot_at, changes.get("last_slot_at", row.last_slot_at))
            self._tables.schedules[row.id] = replace(row, **changes, revision=row.revision + 1)
            return True

    def remove(self, schedule: ScheduleRecord) -> bool:
        with self._tables.atomic():
            return self._tables.schedules.pop(schedule.id, None) is not None

    def due(self, types: Collection[str], limit: int = 100) -> DueSchedules:
        now = self._tables.now()
        mine = [(one.next_at, one) for one in self.all() if one.is_live and one.next_at and one.type in types]
        mine.sort(key=lambda pair: pair[0])
        found = [one for at, one in mine if at <= now][:limit]
        later = next((at for at, _ in mine if at > now), None)
        return DueSchedules(now, tuple(found), later, len(found) == limit)

    def fire(self, firings: Sequence[Firing]) -> tuple[str, ...]:
        with self._tables.atomic():
            return tuple(job_id for one in firings for job_id in self._fire(one))

    def _fire(self, one: Firing) -> list[str]:
        row = self._tables.schedules.get(one.schedule.id)
        read = one.schedule
        if row is None or (row.revision, row.last_slot_at) != (read.revision, read.last_slot_at):
            return []
        if row.paused_at is not None or row.left_code_at is not None:
            return []
        stored = [draft.id for slot, draft in one.drafts if self._insert(row.id, slot, draft)]
        keys = [draft.unique_key for _, draft in one.drafts if draft.unique_key and draft.id not in stored]
        is_blocked = one.again_at is not None and any(self._tables.unique_holder(key) for key in keys)
        self._tables.schedules[row.id] = replace(
            row,
            last_slot_at=row.last_slot_at if is_blocked else one.last_slot_at,
            next_at=one.again_at if is_blocked else one.next_at,
            runs=row.runs + len(stored),
            missed_at=one.missed_at or row.missed_at,
            last_job_id=stored[-1] if stored else row.last_job_id,
            trouble=one.trouble,
        )
        return stored

    def _insert(self, schedule_id: str, slot: datetime | None, draft: Draft) -> bool:
        if slot is not None and (schedule_id, slot) in self._tables.slots.values():
            return False
        stored = self._drafts.admit(draft).created
        if stored:
            self._tables.slots[draft.id] = (schedule_id, slot)
        return stored

    def run_now(self, schedule: ScheduleRecord, draft: Draft) -> DraftReceipt:
        with self._tables.atomic():
            receipt = self._drafts.admit(draft)
            if receipt.created:
                self._tables.slots[draft.id] = (schedule.id, None)
                row = self._tables.schedules.get(schedule.id, schedule)
                self._tables.schedules[schedule.id] = replace(row, last_job_id=draft.id)
            return receipt

    def jobs(self, schedule: ScheduleRecord, limit: int = 50) -> list[tuple[datetime | None, JobRecord]]:
        with self._tables.lock:
            mine = [(slot, key) for key, (owner, slot) in self._tables.slots.items() if owner == schedule.id]
            found = [(slot, record) for slot, key in mine if (record := self._jobs.get(key)) is not None]
        return sorted(found, key=lambda one: one[1].created_at, reverse=True)[:limit]

    def late(self, grace: timedelta, limit: int = 100) -> list[ScheduleRecord]:
        before = self._tables.now() - grace
        live = [one for one in self.all() if one.paused_at is None and one.left_code_at is None]
        return [one for one in live if one.trouble or (one.next_at is not None and one.next_at < before)][:limit]
