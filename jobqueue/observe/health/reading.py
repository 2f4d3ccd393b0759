"""Readings: the values that an evaluation uses, read through the backend at one moment."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from datetime import datetime

from jobqueue.observe.health.finding import Level
from jobqueue.records import DeadLetterCount, Depth, PauseRecord, QueueStats, Scope, WorkerRecord
from jobqueue.records.relay import Waiting

WARN_AT = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The values that were read. A value that keeps its default was not read, and isn't judged.

    The depths may be capped. ``in_part`` says that there are more queues and types than were counted. ``outbox`` is set
    if jobs are relayed, so that no worker here has to run them.
    """

    now: datetime
    depths: Sequence[Depth]
    pauses: Sequence[PauseRecord]
    workers: Sequence[WorkerRecord]
    in_part: bool = False
    outbox: Waiting | None = None
    dead_letters: Sequence[DeadLetterCount] = ()
    known_types: Set[str] | None = None
    capacity: int | None = None

    @property
    def alive(self) -> list[WorkerRecord]:
        """Return the workers that have reported recently."""
        return [one for one in self.workers if one.is_alive(self.now)]

    @property
    def not_taken(self) -> list[Depth]:
        """Return the waiting jobs that no live worker takes. Without any live worker, it is another finding."""
        alive = self.alive
        waiting = [row for row in self.depths if row.queued] if alive else []
        return [row for row in waiting if not any(one.takes(row.queue, row.type) for one in alive)]

    @property
    def unserved_types(self) -> list[str]:
        """Return the waiting types that no live worker takes from any queue."""
        alive, waiting = self.alive, dict.fromkeys(row.type for row in self.not_taken)
        return [name for name in waiting if not any(one.takes(type=name) for one in alive)]

    @property
    def unknown_types(self) -> list[str]:
        """Return the types of jobs that this release has no handler for."""
        met = {one.type for one in self.depths} | {one.type for one in self.dead_letters}
        return [] if self.known_types is None else sorted(met - self.known_types)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueState:
    """One queue. Its depth is the number of queued jobs, due or not."""

    name: str
    level: Level
    depth: int
    capacity: int
    delayed: int
    in_progress: int
    dead_letters: int
    oldest_due_at: datetime | None
    paused: str | None

    @property
    def share(self) -> float:
        """Return the depth as a part of the capacity."""
        return self.depth / self.capacity


def queue_states(seen: Reading) -> list[QueueState]:
    """Sum up each queue that has jobs or is paused. If no capacity was read, return nothing."""
    if seen.capacity is None:
        return []
    paused = {one.name: one.reason for one in seen.pauses if one.scope is Scope.QUEUE}
    names = {one.queue for one in seen.depths} | {one.queue for one in seen.dead_letters} | paused.keys()
    return [_queue_state(name, seen, seen.capacity, paused) for name in sorted(names)]


def _queue_state(name: str, seen: Reading, capacity: int, paused: dict[str, str]) -> QueueState:
    rows = [row for row in seen.depths if row.queue == name]
    depth = sum(row.queued for row in rows)
    return QueueState(
        name=name,
        level=_level(depth / capacity),
        depth=depth,
        capacity=capacity,
        delayed=sum(row.queued - row.due for row in rows),
        in_progress=sum(row.in_progress for row in rows),
        dead_letters=sum(row.count for row in seen.dead_letters if row.queue == name),
        oldest_due_at=min((row.oldest_due_at for row in rows if row.oldest_due_at), default=None),
        paused=paused.get(name),
    )


def _level(share: float) -> Level:
    return Level.ERROR if share >= 1 else Level.WARNING if share >= WARN_AT else Level.OK


def exact(stats: Sequence[QueueStats], pauses: Sequence[PauseRecord]) -> list[Depth]:
    """Turn exact counts into depths, by type and queue."""
    paused = {(one.scope, one.name) for one in pauses}
    return [
        Depth(
            one.queue,
            one.type,
            queued=one.queued,
            capped=False,
            due=one.queued - one.delayed,
            oldest_due_at=one.oldest_due_at,
            in_progress=one.in_progress,
            paused=not paused.isdisjoint([(Scope.QUEUE, one.queue), (Scope.TYPE, one.type)]),
        )
        for one in sorted(stats, key=lambda one: (one.type, one.queue))
    ]
