"""Findings: each has a level, a cause, the queues and types that it concerns, and the page that shows more."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum, StrEnum


class Level(IntEnum):
    """The level of a finding; a higher number is worse. A notice, such as a pause, may be intended and is no alarm."""

    OK = 0
    NOTICE = 1
    WARNING = 2
    ERROR = 3

    @property
    def word(self) -> str:
        """Return the level as it is written."""
        return self.name.lower()


class Cause(StrEnum):
    """The cause of a finding. The values are stable codes. Those about workers are the codes of ``observe.reasons``."""

    QUEUE_FULL = "queue_full"
    NO_WORKER = "no_worker"
    JOB_LEFT_OUT = "job_left_out"
    TYPE_NOT_SERVED = "type_not_served"
    WORKERS_STOPPING = "workers_stopping"
    QUEUE_NOT_SERVED = "queue_not_served"
    TYPE_UNKNOWN = "type_unknown"
    RELAY_LOST = "relay_lost"
    RELAY_IDLE = "relay_idle"
    PAUSED = "paused"
    OVERDUE = "overdue"


class Place(StrEnum):
    """The page that shows more. For queued jobs, it is narrowed to the finding's queues and types."""

    QUEUED_JOBS = "queued_jobs"
    JOB = "job"
    WORKERS = "workers"
    QUEUES = "queues"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One problem.

    ``waiting`` and ``due`` count its jobs. If ``is_capped`` is true, there are more. ``since`` is when it began, if
    known. ``reason`` comes from an operator, a worker or the database.
    """

    level: Level
    cause: Cause
    place: Place
    queues: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    job: str = ""
    worker: str = ""
    waiting: int = 0
    due: int = 0
    is_capped: bool = False
    since: datetime | None = None
    reason: str = ""
