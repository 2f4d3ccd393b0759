"""What an operator reads and does."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from jobqueue.errors import InvalidOption
from jobqueue.records.outcome import Ending
from jobqueue.states import JobStatus

#: What is looked for inside other texts is compared with every letter of each.
LONGEST_SOUGHT = 200


@dataclass(frozen=True, slots=True)
class Refusal:
    """A job an operator's verb left alone, and why: in English, and as a ground with what it is about.

    Where the reason is worded by whoever refused, there is no ground.
    """

    id: str
    reason: str
    ground: Ground | None = field(default=None, compare=False)
    about: str = field(default="", compare=False)


class Ground(StrEnum):
    """Why a backend leaves a job alone; the text says it of a job that has this status, or this unique key."""

    MISSING = "does not exist"
    NOT_RETRIABLE = "is {}; only failed jobs and dead letters are retried"
    KEY_IS_HELD = "a newer job holds its unique key {!r}"
    NOT_QUEUED = "is {}; only queued jobs can be changed"
    HAS_ENDED = "is {} already"
    IS_RUNNING = "is running; cancel it first"
    HAS_CHANGED = "has changed since it was looked at"

    def refusal(self, job_id: str, about: str = "") -> Refusal:
        """Refuse a job on this ground."""
        return Refusal(job_id, self.value.format(about), self, about)


@dataclass(frozen=True, slots=True)
class Handled:
    """What an operator's verb did: the jobs it changed, and those it left alone."""

    done: tuple[str, ...] = ()
    refused: tuple[Refusal, ...] = ()
    #: Those of ``done`` that run, and were only asked to stop.
    asked: tuple[str, ...] = ()


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
class Amendment:
    """What an operator changes of jobs that wait; ``None`` leaves it as it is. ``now`` makes them due at once."""

    queue: str | None = None
    priority: int | None = None
    scheduled_at: datetime | None = None
    now: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which jobs an operator means; what is left empty leaves none out. Moments are of the job's creation.

    ``payload`` holds pairs of a dotted path into the payload and the value to be found there, see ``stands_for``;
    digits in a path are the place in an array, or a key. ``fingerprint`` names a kind of failure; the empty one stands
    for failures without. Raises InvalidOption for an ``error`` longer than ``LONGEST_SOUGHT``.
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
    """The values that a value of ``Filter.payload`` finds: itself, and the text that is written like it."""
    return (value,) if isinstance(value, str) else (value, json.dumps(value))


def is_place(element: str) -> bool:
    """Whether an element of such a path may be a place in an array; none is longer than nine digits can say."""
    return element.isascii() and element.isdecimal() and len(element) <= 9


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
