"""Events of jobs in a worker, which are logged and sent as signals once they are stored."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class EventKind(StrEnum):
    """The kinds of events."""

    STARTED = "started"
    PROGRESSED = "progressed"
    COMPLETED = "completed"
    RETRIED = "retried"
    SNOOZED = "snoozed"
    RELEASED = "released"
    QUARANTINED = "quarantined"
    DEAD_LETTERED = "dead-lettered"
    CANCELLED = "cancelled"
    LEASE_LOST = "lease lost"
    FOLLOWED = "enqueued"


class Event(NamedTuple):
    """One event of one job. Durations are seconds. There is no payload."""

    kind: EventKind
    job_id: str
    job_type: str = ""
    queue: str = ""
    attempt: int = 0
    max_retries: int = 0
    worker: str = ""
    duration: float | None = None
    delay: float | None = None
    reason: str = ""
    error_class: str = ""
    error: str = ""
    progress: str = ""
