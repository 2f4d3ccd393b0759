"""What the live view shows at one moment, as harmless texts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from jobqueue.backends.base import Backend
from jobqueue.cli.finding_text import text
from jobqueue.cli.tables import cell
from jobqueue.cli.values import ago, counted, length, moment
from jobqueue.observe.health import Level, QueueState, Reading, findings, level_of, look, queue_states
from jobqueue.observe.metrics import in_progress
from jobqueue.records import WorkerRecord
from jobqueue.records.outstanding import RunningJob
from jobqueue.relay.outbox import waiting_in

QUEUES = ("queue", "level", "depth", "delayed", "running", "dead", "oldest", "paused")
WORKERS = ("worker", "state", "busy", "queues", "seen", "version")
RUNNING = ("job", "type", "queue", "for", "attempt", "worker")
#: How many running jobs are read: those whose leases end first.
MOST_RUNNING = 200

_MINUTE = timedelta(minutes=1)
Row = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The texts of the view, with the level of each finding and queue. The longest running jobs come first."""

    level: Level
    summary: str
    at: str
    findings: tuple[tuple[Level, str], ...] = ()
    queues: tuple[tuple[Level, Row], ...] = ()
    workers: tuple[tuple[Level, Row], ...] = ()
    running: tuple[tuple[Level, Row], ...] = ()


def snapshot(backend: Backend) -> Snapshot:
    """Read everything that the view shows."""
    seen = look(backend, waiting_in(backend))
    found = findings(seen)
    jobs = sorted(backend.outstanding.running(MOST_RUNNING), key=lambda one: one.started_at or seen.now)
    names = {one.owner: one.name for one in seen.workers}
    return Snapshot(
        level=level_of(found),
        summary=_summary(seen),
        at=moment(seen.now),
        findings=tuple((one.level, cell(text(one, seen.now))) for one in found),
        queues=tuple((one.level, _queue(one, seen.now)) for one in queue_states(seen)),
        workers=tuple((_level_of_worker(one, seen.now), _worker(one, seen.now)) for one in seen.workers),
        running=tuple((Level.OK, _job(one, names, seen.now)) for one in jobs),
    )


def _summary(seen: Reading) -> str:
    queued = counted(sum(row.queued for row in seen.depths), capped=any(row.capped for row in seen.depths))
    dead = counted(
        sum(row.count for row in seen.dead_letters), "dead letter", capped=any(row.capped for row in seen.dead_letters)
    )
    busy, slots = sum(one.busy for one in seen.alive), sum(one.slots for one in seen.alive)
    completed = sum(one.completed for one in seen.attempts.get(_MINUTE, {}).values())
    return (
        f"{queued} queued, {in_progress(seen.depths, seen.in_part):,} in progress, {dead}, "
        f"{counted(len(seen.alive), 'worker')} with {busy:,} of {slots:,} slots busy, {completed:,} completed a minute"
    )


def _queue(one: QueueState, now: datetime) -> Row:
    more, more_dead = "+" if one.is_capped else "", "+" if one.is_dead_capped else ""
    return (
        cell(one.name),
        one.level.word,
        f"{one.depth:,}{more}",
        f"{one.delayed:,}",
        f"{one.in_progress:,}",
        f"{one.dead_letters:,}{more_dead}",
        "-" if one.oldest_due_at is None else length(now - one.oldest_due_at),
        "-" if one.paused is None else cell(one.paused) or "yes",
    )


def _level_of_worker(one: WorkerRecord, now: datetime) -> Level:
    return Level.OK if one.is_alive(now) else Level.WARNING


def _worker(one: WorkerRecord, now: datetime) -> Row:
    return (
        cell(one.name),
        one.state.value if one.is_alive(now) else "silent",
        f"{one.busy:,}/{one.slots:,}",
        "all" if one.queues is None else cell(", ".join(one.queues)),
        ago(one.seen_at, now),
        cell(one.version),
    )


def _job(one: RunningJob, names: dict[str, str], now: datetime) -> Row:
    return (
        cell(one.id),
        cell(one.type),
        cell(one.queue),
        "-" if one.started_at is None else length(now - one.started_at),
        f"{one.attempts:,}",
        cell(names.get(one.owner, one.owner)),
    )
