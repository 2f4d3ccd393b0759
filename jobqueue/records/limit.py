"""Limits: how many jobs of a type or queue run at once, or start in a length of time."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from jobqueue.records.job import Scope


class LimitKind(StrEnum):
    """What a limit counts: jobs that run at once, or attempts that start in each window of time."""

    CONCURRENCY = "concurrency"
    RATE = "rate"


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit of a type or queue: ``number`` running jobs, or starts in every window of ``per`` seconds.

    With a ``key``, it applies to the jobs of each value of the key by itself. ``place`` is what two limits have in
    common if one replaces the other: everything but the number. ``name`` may be a pattern of queues, such as
    ``import.*``: then each of these queues has a limit of its own.
    """

    scope: Scope
    name: str
    kind: LimitKind
    number: int
    per: float = 0.0
    key: str = ""
    place: str = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        place = f"{self.scope}:{self.name}:{self.kind}:{self.per:g}:{self.key}"
        object.__setattr__(self, "place", place)


@dataclass(frozen=True, slots=True)
class StoredLimit:
    """A limit that was set at run time, with who set it, when and why. It replaces the one in code."""

    limit: Limit
    reason: str
    author: str
    stored_at: datetime


@dataclass(frozen=True, slots=True)
class LimitUse:
    """How much of a limit one value of its key uses. Limits without a key have the value ``""``.

    ``running`` has the ids of some of the running jobs, and ``since`` is when the last of them started.
    ``next_start`` says how long a used-up rate still holds.
    """

    limit: Limit
    value: str
    used: int
    next_start: timedelta | None = None
    running: tuple[str, ...] = ()
    since: datetime | None = None

    @property
    def is_used_up(self) -> bool:
        """Return whether no job of this value may start now."""
        return self.used >= self.limit.number
