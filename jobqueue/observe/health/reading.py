"""Readings: the values that an evaluation uses, read through the backend at one moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property

from jobqueue.observe.health.finding import Level, WithheldJobs
from jobqueue.policy.alerts.rules import RuleBook
from jobqueue.records import (
    DeadJob,
    DeadLetterCount,
    Depth,
    LaneRecord,
    LapsedLeases,
    Lengths,
    MetricSum,
    PauseRecord,
    QueueOptions,
    QuietJob,
    Scope,
    WhenFull,
    WorkerRecord,
)
from jobqueue.records.duty import DutyRecord
from jobqueue.records.gauge import Gauge
from jobqueue.records.relay import Waiting
from jobqueue.records.schedule import ScheduleRecord
from jobqueue.records.storage import Storage
from jobqueue.records.worker import NEWS_EVERY

WARN_AT = 0.8
#: How many lanes of a queue are read.
MOST_LANES = 100
#: A worker whose leases have ended and that hasn't reported for this long is dead. Others are told by silence alone.
DEAD_AFTER = NEWS_EVERY + timedelta(seconds=2)


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The values that were read. A value that keeps its default was not read, and isn't judged.

    The depths may be capped. ``in_part`` says that there are more queues and types than were counted, and
    ``dead_in_part`` says so of dead letters. ``counts`` has the number of queued jobs of those queues that were counted
    further. ``outbox`` is set if jobs are relayed, so that no worker here has to run them. ``attempts`` sums up, by
    type, the windows that end now, the shortest first; the last one is the past that the others are compared with.
    ``moving`` has the queues in which an attempt ended lately, and ``busy_at`` is the last minute in which any worker
    counted something. ``lanes`` has the lanes with jobs of strict queues in which jobs are late. ``options`` has the
    options of queues by name. ``capacity`` is the capacity of queues without one of their own.
    ``critical`` has dead letters of critical types. ``ran`` has how long jobs of types that may be slow ran, and
    ``own_limits`` the time limits that these types set themselves.
    """

    now: datetime
    depths: Sequence[Depth]
    pauses: Sequence[PauseRecord]
    workers: Sequence[WorkerRecord]
    in_part: bool = False
    counts: Mapping[str, int] = field(default_factory=dict)
    outbox: Waiting | None = None
    dead_letters: Sequence[DeadLetterCount] = ()
    dead_in_part: bool = False
    lapsed: Sequence[LapsedLeases] = ()
    quiet: Sequence[QuietJob] = ()
    tenants: Mapping[tuple[str, str], Mapping[str, int]] = field(default_factory=dict)
    withheld: Sequence[WithheldJobs] = ()
    lanes: Sequence[LaneRecord] = ()
    attempts: Mapping[timedelta, Mapping[str, MetricSum]] = field(default_factory=dict)
    moving: Set[str] | None = None
    busy_at: datetime | None = None
    skew: timedelta = timedelta(0)
    known_types: Set[str] | None = None
    capacity: int | None = None
    options: Mapping[str, QueueOptions] = field(default_factory=dict)
    gauges: Mapping[str, Gauge] = field(default_factory=dict)
    storage: Storage = field(default_factory=Storage)
    duties: Sequence[DutyRecord] = ()
    late_schedules: Sequence[ScheduleRecord] = ()
    rules: RuleBook = field(default_factory=RuleBook)
    critical: Sequence[DeadJob] = ()
    ran: Mapping[str, Lengths] = field(default_factory=dict)
    own_limits: Mapping[str, timedelta] = field(default_factory=dict)

    def is_alive(self, worker: WorkerRecord) -> bool:
        """Return whether a worker has reported recently. One whose leases have ended must have reported just now."""
        lapsed = any(one.owner == worker.owner for one in self.lapsed)
        return worker.is_alive(self.now) and not (lapsed and self.now - worker.seen_at > DEAD_AFTER)

    @cached_property
    def alive(self) -> list[WorkerRecord]:
        """Return the workers that are alive."""
        return [one for one in self.workers if self.is_alive(one)]

    @cached_property
    def silent(self) -> list[WorkerRecord]:
        """Return the workers that ended without a word, and that are not forgotten yet."""
        return [one for one in self.workers if not self.is_alive(one)]

    @cached_property
    def held_by_dead(self) -> list[LapsedLeases]:
        """Return the ended leases of owners that are not alive."""
        alive = {one.owner for one in self.alive}
        return [one for one in self.lapsed if one.owner not in alive]

    @cached_property
    def not_taken(self) -> list[Depth]:
        """Return the waiting jobs that no live worker takes. Without any live worker, it is another finding."""
        alive = self.alive
        waiting = [row for row in self.depths if row.queued] if alive else []
        return [row for row in waiting if not any(one.takes(row.queue, row.type) for one in alive)]

    @cached_property
    def stopped_queues(self) -> Set[str]:
        """Return the strict queues of which every lane with jobs has stopped at a dead letter."""
        lanes: dict[str, list[bool]] = {}
        for one in self.lanes:
            lanes.setdefault(one.queue, []).append(one.is_stopped)
        return {queue for queue, stopped in lanes.items() if all(stopped) and len(stopped) < MOST_LANES}

    @cached_property
    def unserved_types(self) -> list[str]:
        """Return the waiting types that no live worker takes from any queue."""
        alive, waiting = self.alive, dict.fromkeys(row.type for row in self.not_taken)
        return [name for name in waiting if not any(one.takes(type=name) for one in alive)]

    @cached_property
    def unknown_types(self) -> list[str]:
        """Return the types of jobs that this release has no handler for."""
        met = {one.type for one in self.depths} | {one.type for one in self.dead_letters}
        return [] if self.known_types is None else sorted(met - self.known_types)

    def narrowed(self, queue: str = "", type: str = "") -> Reading:  # noqa: A002 - as the column is called
        """Return what concerns a queue, a type, or both. The workers stay: no other queue's worker is missing."""

        def concerns(place: str, kind: str) -> bool:
            return queue in ("", place) and type in ("", kind)

        names = {Scope.QUEUE: queue, Scope.TYPE: type}
        sums = {
            window: {name: one for name, one in parts.items() if type in ("", name)}
            for window, parts in self.attempts.items()
        }
        depths = [one for one in self.depths if concerns(one.queue, one.type)]
        return replace(
            self,
            depths=depths,
            lanes=[one for one in self.lanes if any(row.queue == one.queue for row in depths)],
            pauses=[one for one in self.pauses if names[one.scope] in ("", one.name)],
            counts={} if type else {name: count for name, count in self.counts.items() if queue in ("", name)},
            dead_letters=[one for one in self.dead_letters if concerns(one.queue, one.type)],
            quiet=[one for one in self.quiet if concerns(one.queue, one.type)],
            withheld=[one for one in self.withheld if concerns(one.queue, one.type)],
            tenants={name: found for name, found in self.tenants.items() if concerns(*name)},
            attempts={} if queue else sums,
            critical=[one for one in self.critical if concerns(one.queue, one.type)],
            ran={} if queue else {name: one for name, one in self.ran.items() if type in ("", name)},
        )

    def without(self, type: str) -> Reading:  # noqa: A002 - as the column is called
        """Return what concerns all other types."""
        sums = {
            window: {name: one for name, one in parts.items() if name != type}
            for window, parts in self.attempts.items()
        }
        return replace(
            self,
            depths=[one for one in self.depths if one.type != type],
            dead_letters=[one for one in self.dead_letters if one.type != type],
            quiet=[one for one in self.quiet if one.type != type],
            withheld=[one for one in self.withheld if one.type != type],
            critical=[one for one in self.critical if one.type != type],
            tenants={name: found for name, found in self.tenants.items() if name[1] != type},
            attempts=sums,
            ran={name: one for name, one in self.ran.items() if name != type},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueState:
    """One queue. Its depth is the number of queued jobs, due or not.

    If ``is_capped``, there are more, and if ``is_dead_capped``, there are more dead letters. ``shed`` counts the jobs
    that were not stored, because the queue was full.
    """

    name: str
    level: Level
    depth: int
    capacity: int
    delayed: int
    in_progress: int
    dead_letters: int
    oldest_due_at: datetime | None
    paused: str | None
    when_full: WhenFull = WhenFull.ACCEPT
    shed: int = 0
    is_capped: bool = False
    is_dead_capped: bool = False

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
    names |= {name for name, gauge in seen.gauges.items() if gauge.shed}
    return [_queue_state(name, seen, seen.capacity, paused) for name in sorted(names)]


def _queue_state(name: str, seen: Reading, capacity: int, paused: dict[str, str]) -> QueueState:
    rows = [row for row in seen.depths if row.queue == name]
    dead = [row for row in seen.dead_letters if row.queue == name]
    options, gauge = seen.options.get(name, QueueOptions()), seen.gauges.get(name, Gauge(name))
    capacity = options.capacity or capacity
    depth = max(sum(row.queued for row in rows), seen.counts.get(name, 0))
    return QueueState(
        name=name,
        level=_level(depth / capacity),
        depth=depth,
        capacity=capacity,
        delayed=sum(row.queued - row.due for row in rows),
        in_progress=sum(row.in_progress for row in rows),
        dead_letters=sum(row.count for row in dead),
        oldest_due_at=min((row.oldest_due_at for row in rows if row.oldest_due_at), default=None),
        paused=paused.get(name),
        when_full=options.when_full,
        shed=gauge.shed,
        is_capped=any(row.capped for row in rows),
        is_dead_capped=any(row.capped for row in dead),
    )


def _level(share: float) -> Level:
    return Level.ERROR if share >= 1 else Level.WARNING if share >= WARN_AT else Level.OK
