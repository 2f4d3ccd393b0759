"""What a worker takes, holds and may lose.

``Claim`` is a named tuple: it crosses by the ten thousand a second, and a frozen dataclass of that width costs four
times as much to make.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from jobqueue.records.outcome import Followed, Settlement

#: A job's id and its fence: they name one claim.
ClaimKey = tuple[str, int]


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
    """One job, taken by ``owner`` for one attempt; ``fence`` is the number no other claim of this job has.

    It begins with the fields of an ``Assignment``, in their order.
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
    """What an executor gets of a claim: enough to run the attempt and to settle it."""

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

    @property
    def claim(self) -> tuple[str, int]:
        """The claim it is part of."""
        return (self.id, self.fence)


@dataclass(frozen=True, slots=True)
class Cycle:
    """What one turn of a worker's loop brought.

    Refused settlements, new claims, the time to the next due job, the follow-up jobs of what was completed, and the
    settlements whose rows others have locked, which are to be offered again. ``is_partial`` says that it looked for
    claims only where there were some lately.
    """

    refused: tuple[Settlement, ...] = ()
    claims: tuple[Claim, ...] = ()
    next_due: timedelta | None = None
    followed: tuple[Followed, ...] = ()
    postponed: tuple[Settlement, ...] = ()
    is_partial: bool = False


@dataclass(frozen=True, slots=True)
class Extension:
    """What a renewal found: claims no longer held, claims an operator wants stopped, and claims whose row was locked.

    A skipped claim keeps the lease it had.
    """

    lost: tuple[Claim, ...] = ()
    skipped: tuple[Claim, ...] = ()
    cancelled: tuple[Claim, ...] = ()

    @classmethod
    def joined(cls, several: Sequence[Extension]) -> Extension:
        """Put what was answered of each claim together."""
        return cls(
            lost=tuple(claim for one in several for claim in one.lost),
            skipped=tuple(claim for one in several for claim in one.skipped),
            cancelled=tuple(claim for one in several for claim in one.cancelled),
        )


@dataclass(frozen=True, slots=True)
class Expired:
    """A claim whose lease ran out; ``company`` counts the other claims that its owner still held."""

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
    """What a sweep ended: leases that ran out, and queued jobs past their expiry; and whether it owes another look."""

    ended: tuple[Settlement, ...] = ()
    expired: tuple[str, ...] = ()
    look_again: bool = False
