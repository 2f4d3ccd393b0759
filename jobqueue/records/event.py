"""What happened to a job, as the worker knows it: told to the log and to those who listen, once it is stored."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class EventKind(StrEnum):
    """What can happen to a job in a worker's hands."""

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
    """One thing that happened to one job. Lengths are seconds; it carries no payload."""

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
