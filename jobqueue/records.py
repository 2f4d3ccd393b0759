"""Frozen values that cross the line between rooms. No behaviour beyond naming; nothing here touches Django.

``Claim`` and ``Settlement`` are named tuples: they cross by the ten thousand a second, and a frozen dataclass of that
width costs four times as much to make.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from jobqueue.states import JobStatus, Move

MESSAGE_LIMIT = 4_000
TRACEBACK_LIMIT = 32_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A job fully decided but not stored. ``payload`` and ``context`` are JSON text; ``delay`` counts from now."""

    id: str
    type: str
    payload: str
    payload_version: int = 1
    queue: str = "default"
    priority: int = 5
    max_retries: int = 3
    delay: timedelta = timedelta(0)
    scheduled_at: datetime | None = None
    expires_at: datetime | None = None
    timeout: timedelta | None = None
    idempotency_key: str | None = None
    unique_key: str | None = None
    tenant: str | None = None
    context: str | None = None

    @property
    def key(self) -> tuple[str, str] | None:
        """The key that may make this draft a duplicate, with the column that holds it."""
        if self.idempotency_key is not None:
            return ("idempotency_key", self.idempotency_key)
        return None if self.unique_key is None else ("unique_key", self.unique_key)


class Admission(StrEnum):
    """What became of a draft."""

    CREATED = "created"
    EXISTING = "existing"


@dataclass(frozen=True, slots=True)
class Receipt:
    """What the caller of ``enqueue`` gets: the job's id, and whether this call made the job.

    ``payload_differs`` tells of a duplicate whose stored payload is not the one offered; the stored one stands.
    """

    id: str
    outcome: Admission
    payload_differs: bool = False

    @property
    def created(self) -> bool:
        """Whether this call stored the job."""
        return self.outcome is Admission.CREATED


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRequest:
    """What a worker would take: at most ``limit`` jobs of ``types``, from ``queues`` or from all of them.

    ``leases`` overrides ``lease`` for single types.
    """

    limit: int
    types: frozenset[str]
    queues: frozenset[str] | None = None
    lease: timedelta = timedelta(seconds=60)
    leases: dict[str, timedelta] = field(default_factory=dict)

    def lease_of(self, job_type: str) -> timedelta:
        """Say how long a claim of this type is held without news."""
        return self.leases.get(job_type, self.lease)


class Claim(NamedTuple):
    """One job, taken by ``owner`` for one attempt; ``fence`` is the number no other claim of this job has."""

    id: str
    type: str
    queue: str
    priority: int
    payload: str
    payload_version: int
    attempt: int
    max_retries: int
    fence: int
    scheduled_at: datetime
    created_at: datetime
    expires_at: datetime | None
    timeout: timedelta | None
    tenant: str | None
    workspace: str | None
    parent_id: str | None
    crash_count: int
    context: str | None
    owner: str


class Ending(StrEnum):
    """How an attempt that did not succeed came to its end."""

    FAILED = "failed"
    TIMED_OUT = "timed_out"
    LEASE_LOST = "lease_lost"
    CRASHED = "crashed"
    RELEASED = "released"
    SNOOZED = "snoozed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True)
class Failure:
    """What is remembered of an attempt that did not succeed; ``of``() makes its texts fit for any database."""

    ending: Ending
    error_class: str = ""
    message: str = ""
    traceback: str = ""
    fingerprint: str | None = None
    duration: timedelta | None = None

    @classmethod
    def of(
        cls,
        ending: Ending,
        *,
        error_class: str = "",
        message: str = "",
        traceback: str = "",
        fingerprint: str | None = None,
        duration: timedelta | None = None,
    ) -> Failure:
        """Make a failure that can be stored whatever its texts hold."""
        return cls(
            ending,
            storable(error_class, 255),
            storable(message, MESSAGE_LIMIT),
            storable(traceback, TRACEBACK_LIMIT, keep_end=True),
            fingerprint,
            duration,
        )


def storable(text: str, limit: int, *, keep_end: bool = False) -> str:
    """Cut a text and replace what a database refuses (NUL, lone surrogates). A traceback's end says most."""
    text = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    text = text.encode("utf-8", "replace").decode("utf-8")
    if len(text) <= limit:
        return text
    return "…" + text[1 - limit :] if keep_end else text[: limit - 1] + "…"


class Settlement(NamedTuple):
    """What an attempt came to, offered by the holder of its claim; stored only if the claim is still held.

    ``delay`` moves a job that goes back to its queue; ``None`` leaves it its place. ``failure`` becomes a row of
    history. Made by the named constructors of ``policy.settling``.
    """

    id: str
    fence: int
    owner: str
    move: Move
    result: str | None = None
    delay: timedelta | None = None
    end_reason: str | None = None
    failure: Failure | None = None

    @property
    def claim(self) -> tuple[str, int]:
        """The claim it settles: no other one has this id and fence."""
        return (self.id, self.fence)


@dataclass(frozen=True, slots=True)
class Cycle:
    """What one turn of a worker's loop brought: refused settlements, new claims, and the time to the next due job."""

    refused: tuple[Settlement, ...] = ()
    claims: tuple[Claim, ...] = ()
    next_due: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Extension:
    """What a renewal found: claims no longer held, claims an operator wants stopped, and claims whose row was locked.

    A skipped claim keeps the lease it had.
    """

    lost: tuple[Claim, ...] = ()
    skipped: tuple[Claim, ...] = ()
    cancelled: tuple[Claim, ...] = ()


@dataclass(frozen=True, slots=True)
class Expired:
    """A claim whose lease ran out; ``company`` counts its owner's other claims that ran out with it."""

    id: str
    type: str
    fence: int
    owner: str
    attempt: int
    max_retries: int
    crash_count: int
    company: int


@dataclass(frozen=True, slots=True)
class Sweep:
    """What a sweep ended: leases that ran out, and queued jobs past their expiry; and whether it owes another look."""

    ended: tuple[Settlement, ...] = ()
    expired: tuple[str, ...] = ()
    look_again: bool = False


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


# What a failed attempt leads to, as `policy.retry.decide` says it.


@dataclass(frozen=True, slots=True)
class Attempt:
    """Which attempt of how many."""

    number: int
    max_retries: int

    @property
    def left(self) -> bool:
        """Whether another attempt may follow."""
        return self.number < self.max_retries


@dataclass(frozen=True, slots=True)
class Again:
    """The job goes back to its queue and runs again after the delay."""

    after: timedelta


@dataclass(frozen=True, slots=True)
class Later:
    """The job goes back to its queue, and the attempt was free."""

    after: timedelta


@dataclass(frozen=True, slots=True)
class Alone:
    """The job goes back to its queue, the attempt was free, and it runs next in an executor of its own."""


@dataclass(frozen=True, slots=True)
class Dead:
    """The job is given up and waits for an operator."""

    reason: str


@dataclass(frozen=True, slots=True)
class Stopped:
    """The job ends by wish."""

    reason: str


Decision = Again | Later | Alone | Dead | Stopped
