"""The port of schedules."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

from jobqueue.records import Draft, DraftReceipt, JobRecord
from jobqueue.records.schedule import DueSchedules, Firing, ScheduleRecord


class Schedules(ABC):
    """Keeps the schedules, and stores the jobs of their slots.

    - A slot gives at most one job, however many workers fire it.
    - The slot and its job are stored in one transaction.
    - ``last_slot_at`` never goes back.
    """

    @abstractmethod
    def all(self, limit: int = 20_000) -> list[ScheduleRecord]:
        """List the schedules by name."""

    @abstractmethod
    def get(self, name: str) -> ScheduleRecord | None:
        """Read a schedule by its name, or else by its id."""

    @abstractmethod
    def add(self, schedule: ScheduleRecord) -> bool:
        """Store a new schedule. Return ``False`` if its name is taken."""

    @abstractmethod
    def change(self, schedule: ScheduleRecord, **changes: Any) -> bool:
        """Change fields of a schedule, unless somebody else changed it since it was read. Return whether it did."""

    @abstractmethod
    def remove(self, schedule: ScheduleRecord) -> bool:
        """Delete a schedule. Its jobs stay. Return whether there was one."""

    @abstractmethod
    def due(self, types: Collection[str], limit: int = 100) -> DueSchedules:
        """Read schedules of these types with due slots, at most ``limit``, those that are due longest first.

        Paused ones, and those that left the code, are not due.
        """

    @abstractmethod
    def fire(self, firings: Sequence[Firing]) -> tuple[str, ...]:
        """Store the jobs of slots, all or none. Return the ids of the stored jobs.

        A schedule is left alone if it has been fired, changed, paused or removed since it was read, or if another
        session is firing it. A job is left out if another job has its unique key; then ``again_at`` decides
        whether its slot is dealt with.
        """

    @abstractmethod
    def run_now(self, schedule: ScheduleRecord, draft: Draft) -> DraftReceipt:
        """Store a job of a schedule that belongs to no slot."""

    @abstractmethod
    def jobs(self, schedule: ScheduleRecord, limit: int = 50) -> list[tuple[datetime | None, JobRecord]]:
        """Read the newest jobs of a schedule with their slots, the newest first, without their history."""

    @abstractmethod
    def late(self, grace: timedelta, limit: int = 100) -> list[ScheduleRecord]:
        """List schedules whose slot has been due for longer than ``grace``, or whose row is in trouble.

        Paused ones, and those that left the code, are left out.
        """
