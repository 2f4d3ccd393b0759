"""What an operator reads and does."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from jobqueue.records.outcome import Ending
from jobqueue.states import JobStatus


@dataclass(frozen=True, slots=True)
class Refusal:
    """A job an operator's verb left alone, and why."""

    id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Handled:
    """What an operator's verb did: the jobs it changed, and those it left alone."""

    done: tuple[str, ...] = ()
    refused: tuple[Refusal, ...] = ()


class Scope(StrEnum):
    """What can be paused."""

    QUEUE = "queue"
    TYPE = "type"


@dataclass(frozen=True, slots=True)
class Pause:
    """A queue or a type that no worker takes from, since when, and why."""

    scope: Scope
    name: str
    reason: str
    paused_at: datetime


@dataclass(frozen=True, slots=True)
class QueueStats:
    """How many jobs of one type wait in one queue, how many of them are not due yet, and the oldest due moment."""

    queue: str
    type: str
    queued: int
    delayed: int
    in_progress: int
    oldest_due_at: datetime | None


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """How many jobs of one type that came from one queue wait for an operator."""

    queue: str
    type: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which jobs an operator means; what is left empty leaves none out. Moments are of the job's creation."""

    statuses: frozenset[JobStatus] = frozenset()
    types: frozenset[str] = frozenset()
    queues: frozenset[str] = frozenset()
    tenant: str | None = None
    error: str = ""
    created_after: datetime | None = None
    created_before: datetime | None = None
    id_prefix: str = ""


@dataclass(frozen=True, slots=True)
class PastAttempt:
    """One row of a job's history: an attempt that did not succeed."""

    fence: int
    attempt: int
    owner: str
    ending: Ending
    error_class: str
    message: str
    traceback: str
    duration: timedelta | None
    ended_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """One row of the job table, as read; ``payload``, ``result``, ``progress`` and ``context`` are decoded JSON."""

    id: str
    type: str
    status: JobStatus
    queue: str
    priority: int
    scheduled_at: datetime
    payload: object
    payload_version: int
    attempts: int
    max_retries: int
    fence: int
    created_at: datetime
    updated_at: datetime
    idempotency_key: str | None = None
    unique_key: str | None = None
    tenant: str | None = None
    workspace: str | None = None
    parent_id: str | None = None
    lease_owner: str | None = None
    lease_until: datetime | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    expires_at: datetime | None = None
    cancel_requested_at: datetime | None = None
    timeout: timedelta | None = None
    crash_count: int = 0
    error: str | None = None
    error_fingerprint: str | None = None
    end_reason: str | None = None
    result: object = None
    progress: object = None
    context: object = None
    history: tuple[PastAttempt, ...] = ()
