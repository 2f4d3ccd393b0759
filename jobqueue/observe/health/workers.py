"""Findings about workers: none is up, some fell silent, and jobs that no live worker takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta

from jobqueue.observe.health.finding import Cause, Finding, Level, Place
from jobqueue.observe.health.reading import Reading
from jobqueue.records import Depth, WorkerRecord

#: Jobs that nobody takes are no news before this.
PATIENCE = timedelta(seconds=10)
#: The same after workers ended in order, because a deploy restarts them.
RESTART = timedelta(minutes=2)
#: How long a worker that fell silent, and that no other one replaced, is a warning.
SILENCE_WARNS_FOR = timedelta(hours=1)
#: Clocks that differ by less disturb nothing.
CLOCK_TOLERANCE = timedelta(seconds=5)


def no_worker(seen: Reading) -> Iterator[Finding]:
    """Find jobs that are due, or held by dead workers, while no worker is up."""
    may_restart = seen.busy_at is not None and seen.now - seen.busy_at < RESTART and not seen.silent
    due = [row for row in seen.depths if _is_due_for(PATIENCE, row, seen)]
    held = sum(one.jobs for one in seen.held_by_dead)
    if seen.alive or may_restart or not (due or held):
        return
    found = of_rows(Cause.NO_WORKER, [row for row in seen.depths if row.queued])
    since = max((one.seen_at for one in seen.silent), default=None)
    yield replace(
        found,
        place=Place.WORKERS,
        held=held,
        is_capped=found.is_capped or seen.in_part,
        since=since or found.since,
    )


def held_by_dead(seen: Reading) -> Iterator[Finding]:
    """Find jobs whose leases ended with their worker, until a live worker takes them back."""
    names = {one.owner: one.name for one in seen.workers}
    for one in seen.held_by_dead if seen.alive else ():
        yield Finding(
            level=Level.WARNING,
            cause=Cause.HELD_BY_DEAD,
            place=Place.WORKERS,
            worker=names.get(one.owner, one.owner),
            held=one.jobs,
            since=one.since,
        )


def worker_silent(seen: Reading) -> Iterator[Finding]:
    """Find workers that ended without a word and that no other worker has replaced."""
    holders = {one.owner for one in seen.held_by_dead}
    successors = list(seen.alive)
    for worker in sorted(seen.silent, key=lambda one: one.seen_at, reverse=True):
        successor = next((one for one in successors if _replaces(one, worker)), None)
        if successor is not None:
            successors.remove(successor)
        elif seen.alive and worker.owner not in holders:  # otherwise another finding names it
            is_news = seen.now - worker.seen_at < SILENCE_WARNS_FOR
            yield Finding(
                level=Level.WARNING if is_news else Level.NOTICE,
                cause=Cause.WORKER_SILENT,
                place=Place.WORKERS,
                worker=worker.name,
                since=worker.seen_at,
            )


def _replaces(successor: WorkerRecord, worker: WorkerRecord) -> bool:
    """Return whether a worker started after another one's end, and serves the same queues."""
    serves_all = successor.queues is None
    serves_these = worker.queues is not None and set(worker.queues) <= set(successor.queues or ())
    return (serves_all or serves_these) and successor.started_at >= worker.seen_at - CLOCK_TOLERANCE


def job_left_out(seen: Reading) -> Iterator[Finding]:
    """Find jobs that can be neither run nor ended."""
    for worker in seen.alive:
        for job_id, why in worker.left_out.items():
            yield Finding(
                level=Level.ERROR,
                cause=Cause.JOB_LEFT_OUT,
                place=Place.JOB,
                job=job_id,
                worker=worker.name,
                reason=why,
            )


def queue_not_served(seen: Reading) -> Iterator[Finding]:
    """Find the queues that no live worker takes jobs from, whatever their type."""
    rows = _kept_waiting(seen)
    for queue in dict.fromkeys(row.queue for row in rows):
        if not any(worker.takes(queue) for worker in seen.alive):
            yield of_rows(Cause.QUEUE_NOT_SERVED, [row for row in rows if row.queue == queue])


def type_not_served(seen: Reading) -> Iterator[Finding]:
    """Find the types that no live worker takes, from any queue or from one of their queues."""
    rows = [row for row in _kept_waiting(seen) if any(worker.takes(row.queue) for worker in seen.alive)]
    types = seen.unserved_types
    for name in dict.fromkeys(row.type for row in rows):
        same = [row for row in rows if row.type == name]
        if name not in types:
            yield from (of_rows(Cause.TYPE_NOT_SERVED, [row]) for row in same)
        elif not _stops(name, seen):
            yield replace(of_rows(Cause.TYPE_NOT_SERVED, same), queues=())


def workers_stopping(seen: Reading) -> Iterator[Finding]:
    """Find the types whose only workers are quiet or stopping."""
    rows = [row for row in _kept_waiting(seen) if any(worker.takes(row.queue) for worker in seen.alive)]
    for name in seen.unserved_types:
        if _stops(name, seen) and (same := [row for row in rows if row.type == name]):
            yield replace(of_rows(Cause.WORKERS_STOPPING, same), queues=())


def type_unknown(seen: Reading) -> Iterator[Finding]:
    """Find types that this release has no handler for, if workers of another release take them."""
    for name in seen.unknown_types:
        if name not in seen.unserved_types:
            yield Finding(level=Level.WARNING, cause=Cause.TYPE_UNKNOWN, place=Place.QUEUED_JOBS, types=(name,))


def clocks_apart(seen: Reading) -> Iterator[Finding]:
    """Find clocks that differ from the one by which leases are judged: this machine's, and those of workers."""
    if abs(seen.skew) >= CLOCK_TOLERANCE:
        yield Finding(level=Level.WARNING, cause=Cause.CLOCKS_APART, place=Place.WORKERS, length=seen.skew)
    for worker in seen.workers:
        ahead = max(worker.seen_at, worker.started_at) - seen.now
        if ahead >= CLOCK_TOLERANCE:
            yield Finding(
                level=Level.WARNING,
                cause=Cause.CLOCKS_APART,
                place=Place.WORKERS,
                worker=worker.name,
                length=ahead,
            )


def _kept_waiting(seen: Reading) -> list[Depth]:
    """List the jobs that no live worker takes, and that are due for longer than a restart takes."""
    moving = seen.moving or frozenset()
    return [row for row in seen.not_taken if _is_due_for(RESTART if row.queue in moving else PATIENCE, row, seen)]


def _is_due_for(length: timedelta, row: Depth, seen: Reading) -> bool:
    return not row.paused and row.oldest_due_at is not None and seen.now - row.oldest_due_at >= length


def _stops(name: str, seen: Reading) -> bool:
    return any(worker.serves(type=name) for worker in seen.alive)


def of_rows(cause: Cause, rows: Sequence[Depth], level: Level = Level.WARNING) -> Finding:
    """Make a finding about queued jobs."""
    return Finding(
        level=level,
        cause=cause,
        place=Place.QUEUED_JOBS,
        queues=tuple(dict.fromkeys(row.queue for row in rows)),
        types=tuple(dict.fromkeys(row.type for row in rows)),
        jobs=sum(row.queued for row in rows),
        due=sum(row.due for row in rows),
        is_capped=any(row.capped for row in rows),
        since=min((row.oldest_due_at for row in rows if row.oldest_due_at), default=None),
    )
