"""What has happened and what waits, in numbers: what workers add up, and what pages and monitors read."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple

#: How far the jobs of one queue and type are counted, those of all together, and how many such groups are told apart,
#: and how many queues with all their types.
COUNTED_TO = 10_000
COUNTED_TOGETHER = 100_000
MOST_GROUPS = 200


class Lengths(NamedTuple):
    """Many lengths of time: how many fell into each bucket of ``policy.histogram``, and their sum in seconds."""

    buckets: Mapping[int, int] = MappingProxyType({})
    total: float = 0.0

    @property
    def number(self) -> int:
        """How many there are."""
        return sum(self.buckets.values())


class Tally(NamedTuple):
    """How attempts of one queue and type ended, each counted once, and what they took.

    ``retried``, ``dead_lettered`` and ``stopped`` say what became of the job; ``lost`` counts leases that ran out and
    whose jobs go back. What was released, snoozed or put into quarantine has not ended. An empty type stands for all
    types of the queue together, and an empty queue beside it for all queues.
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


#: The columns of a tally that count attempts.
ENDS = Tally._fields[2:7]


class Stretch(NamedTuple):
    """What happened in one stretch of time, and the depth that was last met in it; ``None`` where nobody looked."""

    begins_at: datetime
    tally: Tally
    queued: int | None = None
    in_progress: int | None = None
    oldest: float | None = None


class Part(NamedTuple):
    """What one type or one queue had in all that happened: how attempts ended, and how long how many of them ran."""

    name: str
    completed: int
    retried: int
    dead_lettered: int
    stopped: int
    lost: int
    ran: int
    ran_for: float


class Share(NamedTuple):
    """What one type or one queue had in all that happened; ``mean_ran`` is in seconds."""

    name: str
    completed: int
    retried: int
    dead_lettered: int
    stopped: int
    lost: int
    mean_ran: float | None

    @property
    def success(self) -> float | None:
        """Which part of the jobs that came to an end was completed; what was stopped by decision is left out."""
        return success(self.completed, self.dead_lettered)


class Depth(NamedTuple):
    """What waits and runs of one type in one queue, now. Where ``capped``, more are queued than were counted."""

    queue: str
    type: str
    queued: int
    capped: bool
    due: int
    oldest_due_at: datetime | None
    in_progress: int
    paused: bool


def success(completed: int, dead_lettered: int) -> float | None:
    """Say which part was completed; ``None`` where nothing came to an end."""
    ended = completed + dead_lettered
    return completed / ended if ended else None
