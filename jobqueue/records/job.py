"""Jobs as operators see them, and the results of operators' actions."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from jobqueue.records.outcome import Ending
from jobqueue.states import JobStatus


@dataclass(frozen=True, slots=True)
class Refusal:
    """A job that an action left alone, and why: ``reason`` is an English sentence, ``ground`` its kind.

    ``about`` is the detail of the ground. There is no ground if the reason was worded elsewhere.
    """

    id: str
    reason: str
    ground: Ground | None = field(default=None, compare=False)
    about: str = field(default="", compare=False)


class Ground(StrEnum):
    """The reasons why a backend leaves a job alone, with a place for the job's status or unique key."""

    MISSING = "does not exist"
    NOT_RETRIABLE = "is {}; only cancelled jobs and dead letters are retried"
    KEY_IS_HELD = "a newer job holds its unique key {!r}"
    NOT_QUEUED = "is {}; only queued jobs can be changed"
    HAS_ENDED = "is {} already"
    IS_RUNNING = "is running; cancel it first"
    HAS_CHANGED = "has changed since it was looked at"

    def refusal(self, job_id: str, about: str = "") -> Refusal:
        """Return the refusal of a job for this reason."""
        return Refusal(job_id, self.value.format(about), self, about)


@dataclass(frozen=True, slots=True)
class Handled:
    """The result of an action: the jobs it changed, and those it left alone."""

    done: tuple[str, ...] = ()
    refused: tuple[Refusal, ...] = ()
    #: The jobs in ``done`` that are running and were asked to stop.
    asked: tuple[str, ...] = ()


class Scope(StrEnum):
    """The things that can be paused."""

    QUEUE = "queue"
    TYPE = "type"


@dataclass(frozen=True, slots=True)
class PauseRecord:
    """A paused queue or type, with the moment and the reason."""

    scope: Scope
    name: str
    reason: str
    paused_at: datetime


@dataclass(frozen=True, slots=True)
class QueueStats:
    """The numbers of queued, delayed and running jobs of one type in one queue, and the oldest due moment."""

    queue: str
    type: str
    queued: int
    delayed: int
    in_progress: int
    oldest_due_at: datetime | None


@dataclass(frozen=True, slots=True)
class DeadLetterCount:
    """The number of dead letters of one type from one queue. If ``capped``, there are more than were counted."""

    queue: str
    type: str
    count: int
    capped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Amendment:
    """Changes to queued jobs. ``None`` keeps a value. ``now`` makes the jobs due at once."""

    queue: str | None = None
    priority: int | None = None
    scheduled_at: datetime | None = None
    now: bool = False


@dataclass(frozen=True, slots=True)
class PastAttempt:
    """A row of a job's history: an attempt that did not succeed."""

    fence: int
    attempt: int
    owner: str
    ending: Ending
    error_class: str
    message: str
    traceback: str
    duration: timedelta | None
    ended_at: datetime
    release: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """A row of the job table. ``payload``, ``result``, ``progress`` and ``context`` are decoded JSON."""

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
    concurrency_key: str | None = None
    fair_key: str | None = None
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
    completed_by: str | None = None
    parallel: bool = True
    lane: str | None = None
    lane_position: int | None = None
    history: tuple[PastAttempt, ...] = ()
