"""Schedules in a table."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet

from jobqueue.backends.ports.schedules import Schedules
from jobqueue.backends.sql.ports.jobs import SqlJobReader
from jobqueue.backends.sql.schedule_rows import COLUMNS, record_of, values_of
from jobqueue.backends.sql.session import Session
from jobqueue.clock import to_text
from jobqueue.models import Job, Schedule
from jobqueue.records import Admission, Draft, DraftReceipt, Filter, JobRecord
from jobqueue.records.schedule import DueSchedules, Firing, ScheduleRecord
from jobqueue.states import ACTIVE

Slot = tuple[str, datetime | None, Draft]

_FIRED = (
    "UPDATE job_queue_schedule SET last_slot_at = %s, next_at = %s, runs = %s, missed_at = coalesce(%s, missed_at), "
    "last_job_id = coalesce(%s, last_job_id), trouble = %s WHERE id = %s"
)
_MOST_RUNS = 2_000_000_000
#: Revisions start again after this one, which a foreign program may have stored.
_LAST_REVISION = 2**31 - 1


class SqlSchedules(Schedules):
    """Keeps one row for each schedule. A subclass stores jobs with their slots."""

    def __init__(self, session: Session, jobs: SqlJobReader) -> None:
        self._session = session
        self._jobs = jobs

    @abstractmethod
    def insert(self, slots: Sequence[Slot]) -> set[str]:
        """Store jobs of schedules, and return the ids of the stored ones: those whose keys and slots were free."""

    @property
    def _rows(self) -> QuerySet[Schedule]:
        return self._session.rows(Schedule)

    def _records(self, rows: QuerySet[Schedule]) -> list[ScheduleRecord]:
        with self._session.reading():
            return [record_of(row) for row in rows.values(*COLUMNS)]

    def all(self, limit: int = 20_000) -> list[ScheduleRecord]:
        return self._records(self._rows.order_by("name")[:limit])

    def get(self, name: str) -> ScheduleRecord | None:
        found = self._records(self._rows.filter(name=name)) or self._records(self._rows.filter(pk=name))
        return found[0] if found else None

    def add(self, schedule: ScheduleRecord) -> bool:
        def work() -> bool:
            try:
                with transaction.atomic(using=self._session.alias):
                    self._rows.create(**values_of(schedule))
            except IntegrityError:
                if self._rows.filter(name=schedule.name).exists():
                    return False
                raise
            return True

        return self._session.transact(work)

    def change(self, schedule: ScheduleRecord, **changes: Any) -> bool:
        def work() -> bool:
            row = self._rows.filter(pk=schedule.id, revision=schedule.revision).select_for_update()
            last = row.values_list("last_slot_at", flat=True).first()
            if last is None:
                return False
            if "last_slot_at" in changes:  # a worker may have fired it since it was read
                changes["last_slot_at"] = max(last, changes["last_slot_at"])
            said = values_of(schedule, *changes, **changes)
            return (
                self._rows.filter(pk=schedule.id).update(**said, revision=schedule.revision % _LAST_REVISION + 1) == 1
            )

        return self._session.transact(work)

    def remove(self, schedule: ScheduleRecord) -> bool:
        return self._session.transact(lambda: self._rows.filter(pk=schedule.id).delete()[0] > 0)

    def due(self, types: Collection[str], limit: int = 100) -> DueSchedules:
        now = self._session.now()
        live = self._rows.filter(
            next_at__isnull=False, paused_at__isnull=True, left_code_at__isnull=True, type__in=sorted(types)
        ).order_by("next_at")
        with self._session.reading():
            first = live.values_list("next_at", flat=True).first()
        if first is None or first > now:
            return DueSchedules(now, (), first)
        found = self._records(live.filter(next_at__lte=now)[:limit])
        with self._session.reading():
            following = live.filter(next_at__gt=now).values_list("next_at", flat=True).first()
        return DueSchedules(now, tuple(found), following, len(found) == limit)

    def fire(self, firings: Sequence[Firing]) -> tuple[str, ...]:
        return self._session.transact(lambda: self._fire({one.schedule.id: one for one in firings}))

    def _fire(self, firings: dict[str, Firing]) -> tuple[str, ...]:
        mine = [firings[key] for key in self._held(firings)]
        slots = [(one.schedule.id, slot, draft) for one in mine for slot, draft in one.drafts]
        stored = self.insert(slots) if slots else set[str]()
        blocked = self._blocked([one for one in mine if one.again_at], stored)
        rows = [self._row(one, stored, one.schedule.id in blocked) for one in mine]
        with self._session.connection.cursor() as cursor:
            cursor.executemany(_FIRED, rows)
        return tuple(draft.id for _, _, draft in slots if draft.id in stored)

    def _held(self, firings: dict[str, Firing]) -> Iterator[str]:
        """Lock the schedules that are as they were read, and yield their ids. Others' locks are skipped."""
        rows = self._rows.filter(pk__in=list(firings), paused_at__isnull=True, left_code_at__isnull=True)
        for key, revision, last in rows.select_for_update(skip_locked=True).values_list(
            "id", "revision", "last_slot_at"
        ):
            read = firings[key].schedule
            if (revision, last) == (read.revision, read.last_slot_at):
                yield key

    def _blocked(self, waiting: Sequence[Firing], stored: set[str]) -> set[str]:
        """Return the schedules whose earlier job still waits or runs."""
        keys = {
            draft.unique_key: one.schedule.id for one in waiting for _, draft in one.drafts if draft.id not in stored
        }
        rows = self._session.rows(Job).filter(unique_key__in=[key for key in keys if key], status__in=sorted(ACTIVE))
        return {keys[key] for key in rows.values_list("unique_key", flat=True)} if keys else set()

    @staticmethod
    def _row(one: Firing, stored: set[str], is_blocked: bool) -> tuple[Any, ...]:
        done = [draft.id for _, draft in one.drafts if draft.id in stored]
        last, next_at = one.last_slot_at, one.next_at
        if is_blocked:
            last, next_at = one.schedule.last_slot_at, one.again_at
        runs = min(one.schedule.runs + len(done), _MOST_RUNS)
        job_id = done[-1] if done else None
        return (_text(last), _text(next_at), runs, _text(one.missed_at), job_id, one.trouble, one.schedule.id)

    def run_now(self, schedule: ScheduleRecord, draft: Draft) -> DraftReceipt:
        def work() -> DraftReceipt:
            if self.insert([(schedule.id, None, draft)]):
                self._rows.filter(pk=schedule.id).update(last_job_id=draft.id)
                return DraftReceipt(draft.id, Admission.CREATED)
            holders = self._session.rows(Job).filter(unique_key=draft.unique_key, status__in=sorted(ACTIVE))
            return DraftReceipt(holders.values_list("id", flat=True).first() or draft.id, Admission.EXISTING)

        return self._session.transact(work)

    def jobs(self, schedule: ScheduleRecord, limit: int = 50) -> list[tuple[datetime | None, JobRecord]]:
        with self._session.reading():
            mine = self._session.rows(Job).filter(schedule_id=schedule.id)
            slots = list(mine.filter(slot_at__isnull=False).order_by("-slot_at").values_list("id", "slot_at")[:limit])
            extra = list(mine.filter(slot_at__isnull=True).order_by("-id").values_list("id", "slot_at")[:limit])
        of = dict(slots + extra)
        found = (
            [(of[record.id], record) for record in self._jobs.find(Filter(ids=frozenset(of)), len(of))] if of else []
        )
        return sorted(found, key=lambda one: one[1].created_at, reverse=True)[:limit]

    def late(self, grace: timedelta, limit: int = 100) -> list[ScheduleRecord]:
        live = self._rows.filter(paused_at__isnull=True, left_code_at__isnull=True)
        due = live.filter(next_at__isnull=False, next_at__lt=self._session.now() - grace, trouble="")
        troubled = live.filter(~Q(trouble="")).order_by("name")[:limit]
        return [*self._records(due.order_by("next_at")[:limit]), *self._records(troubled)][:limit]


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else to_text(moment)
