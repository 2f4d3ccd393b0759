"""Claims, their leases, and the results of taking, renewing and sweeping them.

``Claim`` is a named tuple because a worker makes up to ten thousand a second. A frozen dataclass of that width costs
four times as much to make.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from jobqueue.records.limit import Limit
from jobqueue.records.outcome import Followed, Settlement
from jobqueue.records.queue_options import QueueOptions

#: A job's id and fence, which identify a claim.
ClaimKey = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRequest:
    """A request for at most ``limit`` jobs of ``types``, from ``queues`` or from all queues.

    ``leases`` overrides ``lease`` for single types. ``limits`` are those in the worker's code, for types by their
    current names; ``names`` has the current names of types by their aliases, and ``entries`` the names and patterns of
    queues that have options. ``queue_options`` has the options of those entries whose jobs have an order of their own.
    """

    limit: int
    types: frozenset[str]
    queues: frozenset[str] | None = None
    lease: timedelta = timedelta(seconds=60)
    leases: dict[str, timedelta] = field(default_factory=dict)
    limits: tuple[Limit, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    entries: tuple[str, ...] = ()
    queue_options: Mapping[str, QueueOptions] = field(default_factory=dict)

    def lease_of(self, job_type: str) -> timedelta:
        """Return how long a claim of this type is held after its last renewal."""
        return self.leases.get(job_type, self.lease)


class Claim(NamedTuple):
    """A job taken by ``owner`` for one attempt. No other claim of this job has the same ``fence``.

    The fields of ``Assignment`` come first, in the same order.
    """

    id: str
    type: str
    queue: str
    payload: str
    payload_version: int
    attempt: int
    max_retries: int
    fence: int
    owner: str
    tenant: str | None
    workspace: str | None
    parent_id: str | None
    context: str | None
    priority: int
    scheduled_at: datetime
    created_at: datetime
    expires_at: datetime | None
    timeout: timedelta | None
    crash_count: int


class Assignment(NamedTuple):
    """The part of a claim that an executor needs to run the attempt and settle it."""

    id: str
    type: str
    queue: str
    payload: str
    payload_version: int
    attempt: int
    max_retries: int
    fence: int
    owner: str
    tenant: str | None
    workspace: str | None
    parent_id: str | None
    context: str | None
    #: When the job was due, in seconds since 1970. Only executors that trace jobs get it.
    due_at: float | None = None

    @property
    def claim(self) -> tuple[str, int]:
        """Return the key of the assignment's claim."""
        return (self.id, self.fence)


@dataclass(frozen=True, slots=True)
class Cycle:
    """The result of one turn of a worker's loop.

    ``next_due`` is the time to the next due job. ``postponed`` has settlements whose rows other sessions have locked.
    ``is_partial`` means that the claim only looked where jobs were found recently, or that due jobs wait for limits.
    """

    refused: tuple[Settlement, ...] = ()
    claims: tuple[Claim, ...] = ()
    next_due: timedelta | None = None
    followed: tuple[Followed, ...] = ()
    postponed: tuple[Settlement, ...] = ()
    is_partial: bool = False


@dataclass(frozen=True, slots=True)
class Extension:
    """The result of a renewal: lost claims, claims whose row was locked, and claims that an operator cancelled.

    A skipped claim keeps its old lease.
    """

    lost: tuple[Claim, ...] = ()
    skipped: tuple[Claim, ...] = ()
    cancelled: tuple[Claim, ...] = ()

    @classmethod
    def joined(cls, several: Sequence[Extension]) -> Extension:
        """Return the union of several results."""
        return cls(
            lost=tuple(claim for one in several for claim in one.lost),
            skipped=tuple(claim for one in several for claim in one.skipped),
            cancelled=tuple(claim for one in several for claim in one.cancelled),
        )


@dataclass(frozen=True, slots=True)
class OverdueLease:
    """A claim whose lease has expired, or whose worker is dead. ``company`` counts the other claims of its owner."""

    id: str
    type: str
    fence: int
    owner: str
    attempt: int
    max_retries: int
    crash_count: int
    company: int
    queue: str


@dataclass(frozen=True, slots=True)
class Sweep:
    """The result of a sweep: expired leases, queued jobs past their expiry, and whether to sweep again soon."""

    ended: tuple[Settlement, ...] = ()
    expired: tuple[str, ...] = ()
    look_again: bool = False
