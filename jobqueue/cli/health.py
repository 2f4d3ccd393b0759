"""How the queue is: depths against their capacity, what nobody will run, and the level that all of it comes to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum

from jobqueue.cli.values import counted, length
from jobqueue.records import DeadLetters, Pause, QueueStats, Scope, WorkerRecord
from jobqueue.records.relay import Waiting

WARN_AT = 0.8
#: Jobs that wait longer for a shared database that is not known to be lost have nobody who relays them.
RELAYED_WITHIN = timedelta(minutes=1)


class Level(IntEnum):
    """How bad it is; the number is the exit code of ``status``."""

    OK = 0
    WARNING = 1
    ERROR = 2

    @property
    def word(self) -> str:
        """The level as it is written."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be."""

    level: Level
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueState:
    """One queue: its depth is what waits in it, due or not."""

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
        """The depth as a part of the capacity."""
        return self.depth / self.capacity


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What was read of the queue at one moment."""

    now: datetime
    stats: Sequence[QueueStats]
    dead_letters: Sequence[DeadLetters]
    pauses: Sequence[Pause]
    workers: Sequence[WorkerRecord]
    known_types: Set[str]
    capacity: int
    #: What waits to be relayed, where jobs are: then nobody here is to run them.
    outbox: Waiting | None = None

    @property
    def alive(self) -> list[WorkerRecord]:
        """The workers heard of lately."""
        return [one for one in self.workers if one.is_alive(self.now)]

    @property
    def unserved_types(self) -> list[str]:
        """The types that wait and that no live worker knows; where none lives at all, that is another finding."""
        served = {name for worker in self.alive for name in worker.types}
        return sorted({row.type for row in self.stats if row.queued} - served) if self.alive else []

    @property
    def unknown_types(self) -> list[str]:
        """The types with jobs that this release has no handler for."""
        return sorted(({one.type for one in self.stats} | {one.type for one in self.dead_letters}) - self.known_types)


def queue_states(seen: Snapshot) -> list[QueueState]:
    """Sum up each queue that has jobs or is paused."""
    paused = {one.name: one.reason for one in seen.pauses if one.scope is Scope.QUEUE}
    names = {one.queue for one in seen.stats} | {one.queue for one in seen.dead_letters} | paused.keys()
    return [_queue_state(name, seen, paused) for name in sorted(names)]


def _queue_state(name: str, seen: Snapshot, paused: dict[str, str]) -> QueueState:
    rows = [row for row in seen.stats if row.queue == name]
    depth = sum(row.queued for row in rows)
    return QueueState(
        name=name,
        level=_level(depth / seen.capacity),
        depth=depth,
        capacity=seen.capacity,
        delayed=sum(row.delayed for row in rows),
        in_progress=sum(row.in_progress for row in rows),
        dead_letters=sum(row.count for row in seen.dead_letters if row.queue == name),
        oldest_due_at=min((row.oldest_due_at for row in rows if row.oldest_due_at), default=None),
        paused=paused.get(name),
    )


def _level(share: float) -> Level:
    return Level.ERROR if share >= 1 else Level.WARNING if share >= WARN_AT else Level.OK


def findings(seen: Snapshot) -> list[Finding]:
    """Say what is not as it should be, the worst first."""
    found = [
        Finding(
            state.level,
            f"queue {state.name}: {counted(state.depth)} wait, {state.share:.0%} of its capacity of {state.capacity:,}",
        )
        for state in queue_states(seen)
        if state.level is not Level.OK
    ]
    if seen.outbox is not None:
        found += _of_outbox(seen.outbox, seen.now)
        return sorted(found, key=lambda one: -one.level)
    due = sum(row.queued - row.delayed for row in seen.stats)
    if due and not seen.alive:
        found.append(
            Finding(Level.WARNING, f"{counted(due)} due, and no worker is up: start one with manage.py runworker")
        )
    found += [
        Finding(
            Level.ERROR, f"job {job_id} can neither be run nor ended, and worker {worker.name} leaves it out: {why}"
        )
        for worker in seen.alive
        for job_id, why in worker.left_out.items()
    ]
    found += [
        Finding(Level.WARNING, f"no live worker knows the type {name}: its jobs wait{_release_note(name, seen)}")
        for name in seen.unserved_types
    ]
    found += [
        Finding(Level.WARNING, f"this release has no handler for the type {name}: its jobs wait for one that has")
        for name in seen.unknown_types
        if name not in seen.unserved_types
    ]
    return sorted(found, key=lambda one: -one.level)


def _of_outbox(outbox: Waiting, now: datetime) -> Iterator[Finding]:
    """Say whether what is to be relayed waits for more than its turn."""
    if not outbox.count or outbox.oldest is None:
        return
    waits = f"{counted(outbox.count)} still to be relayed, the oldest for {length(now - outbox.oldest)}"
    if outbox.lost_at is not None:
        away = f"the shared database has been out of reach for {length(now - outbox.lost_at)}"
        yield Finding(Level.WARNING, f"{waits}; {away}: {outbox.error}")
    elif now - outbox.oldest > RELAYED_WITHIN:
        yield Finding(Level.WARNING, f"{waits}: is a worker up that relays them? Start one with manage.py runworker")


def _release_note(name: str, seen: Snapshot) -> str:
    return ", and this release has no handler for it either" if name not in seen.known_types else ""


def level_of(found: Sequence[Finding]) -> Level:
    """The worst level there is."""
    return max((one.level for one in found), default=Level.OK)


def oldest_age(moment: datetime | None, now: datetime) -> str:
    """Write how long the oldest due job has waited."""
    return "-" if moment is None else length(now - moment)
