"""Schedules, and the jobs that are to be stored for their slots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from jobqueue.records.draft import Draft


class Missed(StrEnum):
    """What happens to slots that no worker fired in time: none runs, the newest runs, or all run up to a cap."""

    SKIP = "skip"
    ONCE = "once"
    ALL = "all"


class Overlap(StrEnum):
    """What a slot does while an earlier job of the schedule waits or runs: it runs too, is dropped, or waits."""

    ALLOW = "allow"
    SKIP = "skip"
    QUEUE = "queue"


class WhilePaused(StrEnum):
    """What happens to slots during a pause: they are dropped, or count as missed when it ends."""

    DROP = "drop"
    KEEP = "keep"


class Origin(StrEnum):
    """Where a schedule is defined."""

    CODE = "code"
    DATABASE = "database"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRecord:
    """A schedule. The first fields are what a person or the code says; the others are its state."""

    name: str
    type: str
    rule: str
    zone: str = "UTC"
    payload: str = "{}"
    payload_version: int = 1
    options: Mapping[str, object] = field(default_factory=dict)
    start_at: datetime | None = None
    end_at: datetime | None = None
    max_runs: int | None = None
    jitter: timedelta = timedelta(0)
    missed: Missed = Missed.ONCE
    missed_cap: int = 100
    overlap: Overlap = Overlap.ALLOW
    while_paused: WhilePaused = WhilePaused.DROP

    id: str
    origin: Origin = Origin.DATABASE
    revision: int = 0
    runs: int = 0
    last_slot_at: datetime
    next_at: datetime | None = None
    missed_at: datetime | None = None
    last_job_id: str | None = None
    paused_at: datetime | None = None
    pause_reason: str = ""
    left_code_at: datetime | None = None
    trouble: str = ""
    declared: Mapping[str, object] = field(default_factory=dict)

    @property
    def is_live(self) -> bool:
        """Return whether its slots become jobs."""
        return self.paused_at is None and self.left_code_at is None and self.next_at is not None


#: The fields of a schedule that a person or the code says.
SAID = (
    *("type", "rule", "zone", "payload", "payload_version", "options", "start_at", "end_at", "max_runs"),
    *("jitter", "missed", "missed_cap", "overlap", "while_paused"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """The jobs for slots of a schedule, and its state afterwards. Stored only if the schedule hasn't changed since."""

    schedule: ScheduleRecord
    drafts: tuple[tuple[datetime, Draft], ...] = ()
    last_slot_at: datetime
    next_at: datetime | None
    missed_at: datetime | None = None
    trouble: str = ""
    #: When to look again if an earlier job is in the way of a schedule that lets its slots wait.
    again_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class DueSchedules:
    """The schedules with due slots, and when the next one is due; ``None`` if there is none."""

    now: datetime
    schedules: tuple[ScheduleRecord, ...] = ()
    next_at: datetime | None = None
    is_partial: bool = False
