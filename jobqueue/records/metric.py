"""Metrics: values that workers count, and values that pages and monitors read."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple

#: The limits of counting: the jobs of one queue and type, all jobs together, and the number of groups, which are pairs
#: of queue and type, or queues.
COUNTED_TO = 10_000
COUNTED_TOGETHER = 100_000
MOST_GROUPS = 200
#: Jobs that took this many attempts or more are counted together.
MOST_ATTEMPTS = 26


class Lengths(NamedTuple):
    """Many durations: the number in each bucket of ``policy.histogram``, and their sum in seconds."""

    buckets: Mapping[int, int] = MappingProxyType({})
    total: float = 0.0

    @property
    def number(self) -> int:
        """Return how many durations there are."""
        return sum(self.buckets.values())


class Tally(NamedTuple):
    """How the attempts of one queue and type ended, each counted once, and how long jobs waited and ran.

    ``retried``, ``dead_lettered`` and ``stopped`` count failed attempts by what happened to the job. ``lost`` counts
    expired leases whose jobs went back to the queue. Released, snoozed and quarantined attempts aren't counted. If the
    type is empty, the tally is for all types of the queue. If the queue is empty too, it is for everything.
    ``attempts`` has how many attempts each ended job took, by number instead of by bucket; only counters keep it.
    """

    queue: str
    type: str
    completed: int = 0
    retried: int = 0
    dead_lettered: int = 0
    stopped: int = 0
    lost: int = 0
    waited: Lengths = Lengths()
    ran: Lengths = Lengths()
    attempts: Lengths = Lengths()


#: The columns of a tally that count attempts.
ENDS = Tally._fields[2:7]


class Stretch(NamedTuple):
    """The metrics of one stretch of time, and the last depth sampled in it, or ``None`` without a sample.

    ``shed`` is how many jobs had been shed since the first one.
    """

    begins_at: datetime
    tally: Tally
    queued: int | None = None
    in_progress: int | None = None
    oldest: float | None = None
    shed: int | None = None


class MetricSum(NamedTuple):
    """The totals of one type or queue: how attempts ended, how many ran, and for how long."""

    name: str
    completed: int
    retried: int
    dead_lettered: int
    stopped: int
    lost: int
    ran: int
    ran_for: float


class Share(NamedTuple):
    """The share of one type or queue in all metrics. ``mean_ran`` is in seconds."""

    name: str
    completed: int
    retried: int
    dead_lettered: int
    stopped: int
    lost: int
    mean_ran: float | None

    @property
    def success(self) -> float | None:
        """Return the share of completed jobs among those that ended. Jobs stopped on request don't count."""
        return success(self.completed, self.dead_lettered)


class Depth(NamedTuple):
    """The current depth of one type in one queue. If ``capped``, more jobs are queued than were counted."""

    queue: str
    type: str
    queued: int
    capped: bool
    due: int
    oldest_due_at: datetime | None
    in_progress: int
    paused: bool


def success(completed: int, dead_lettered: int) -> float | None:
    """Return the share of completed jobs, or ``None`` if no job ended."""
    ended = completed + dead_lettered
    return completed / ended if ended else None
