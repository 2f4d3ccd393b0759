"""Jobs as operators see them, and the results of operators' actions."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from jobqueue.errors import InvalidOption
from jobqueue.records.outcome import Ending
from jobqueue.states import JobStatus

#: The longest text to search for, because each letter of each text is compared with it.
LONGEST_SOUGHT = 200


@dataclass(frozen=True, slots=True)
class Refusal:
    """A job that an action left alone, and why, in English and as a ground.

    ``about`` is the detail of the ground. There is no ground if the reason was worded elsewhere.
    """

    id: str
    reason: str
    ground: Ground | None = field(default=None, compare=False)
    about: str = field(default="", compare=False)


class Ground(StrEnum):
    """The reasons why a backend leaves a job alone, with a place for the job's status or unique key."""

    MISSING = "does not exist"
    NOT_RETRIABLE = "is {}; only failed jobs and dead letters are retried"
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
    """The number of dead letters of one type from one queue."""

    queue: str
    type: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Amendment:
    """Changes to queued jobs. ``None`` keeps a value. ``now`` makes the jobs due at once."""

    queue: str | None = None
    priority: int | None = None
    scheduled_at: datetime | None = None
    now: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """A selection of jobs. Empty fields match every job. Moments are compared with the job's creation.

    ``payload`` holds pairs of a dotted path into the payload and a value; see ``stands_for``. Digits in a path are an
    index of an array, or a key. ``fingerprint`` selects a kind of failure; the empty one selects failures without a
    fingerprint. Raises InvalidOption for an ``error`` longer than ``LONGEST_SOUGHT``.
    """

    ids: frozenset[str] = frozenset()
    statuses: frozenset[JobStatus] = frozenset()
    types: frozenset[str] = frozenset()
    queues: frozenset[str] = frozenset()
    tenant: str | None = None
    error: str = ""
    created_after: datetime | None = None
    created_before: datetime | None = None
    id_prefix: str = ""
    idempotency_key: str | None = None
    parent_id: str | None = None
    lease_owner: str | None = None
    fingerprint: str | None = None
    payload: tuple[tuple[str, object], ...] = ()

    def __post_init__(self) -> None:
        if len(self.error) > LONGEST_SOUGHT:
            raise InvalidOption("error", f"must be at most {LONGEST_SOUGHT} characters, got {len(self.error)}")


def stands_for(value: object) -> tuple[object, ...]:
    """Return the values that a value in ``Filter.payload`` matches: itself, and the text that is written like it."""
    return (value,) if isinstance(value, str) else (value, json.dumps(value))


def is_place(element: str) -> bool:
    """Return whether an element of such a path may be an array index, which has nine digits at most."""
    return element.isascii() and element.isdecimal() and len(element) <= 9


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
