"""The evaluation: from a reading to findings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta

from jobqueue.observe.health.finding import Cause, Finding, Level, Place
from jobqueue.observe.health.reading import Reading, queue_states
from jobqueue.records import Depth, Scope
from jobqueue.records.relay import Waiting

#: A due job that has waited for this long doesn't just wait for its turn.
OLD = timedelta(hours=1)
#: Jobs that wait longer than this, while the shared database isn't known to be lost, have no relay.
RELAYED_WITHIN = timedelta(minutes=1)


def findings(seen: Reading) -> list[Finding]:
    """Return what is wrong, the worst first."""
    found = [*_full(seen)]
    if seen.outbox is not None:
        found += [*_not_relayed(seen.outbox, seen), *_paused(seen)]
    else:
        found += [*_no_worker(seen), *_left_out(seen), *_not_taken(seen), *_unknown(seen), *_paused(seen)]
        found += _overdue(seen)
    return sorted(found, key=lambda one: -one.level)


def _full(seen: Reading) -> Iterator[Finding]:
    for state in queue_states(seen):
        if state.level is not Level.OK:
            yield Finding(
                level=state.level,
                cause=Cause.QUEUE_FULL,
                place=Place.QUEUED_JOBS,
                queues=(state.name,),
                waiting=state.depth,
                due=state.depth - state.delayed,
            )


def _not_relayed(outbox: Waiting, seen: Reading) -> Iterator[Finding]:
    """Find jobs that have waited too long to be relayed."""
    if not outbox.count or outbox.oldest is None:
        return
    if outbox.lost_at is not None:
        cause, since = Cause.RELAY_LOST, outbox.lost_at
    elif seen.now - outbox.oldest > RELAYED_WITHIN:
        cause, since = Cause.RELAY_IDLE, outbox.oldest
    else:
        return
    yield Finding(
        level=Level.WARNING,
        cause=cause,
        place=Place.QUEUED_JOBS,
        waiting=outbox.count,
        since=since,
        reason=outbox.error if cause is Cause.RELAY_LOST else "",
    )


def _no_worker(seen: Reading) -> Iterator[Finding]:
    """Find due jobs without a live worker. Jobs that aren't due yet need none."""
    if not seen.alive and any(row.due for row in seen.depths):
        found = _of_rows(Cause.NO_WORKER, [row for row in seen.depths if row.queued])
        yield replace(found, place=Place.WORKERS, is_capped=found.is_capped or seen.in_part)


def _left_out(seen: Reading) -> Iterator[Finding]:
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


def _not_taken(seen: Reading) -> Iterator[Finding]:
    """Find the types that no live worker takes, and the types that none takes from one of their queues."""
    rows, types = seen.not_taken, seen.unserved_types
    for name in types:
        stops = any(worker.serves(type=name) for worker in seen.alive)
        cause = Cause.WORKERS_STOPPING if stops else Cause.TYPE_NOT_SERVED
        yield _of_rows(cause, [row for row in rows if row.type == name])
    for row in rows:
        if row.type not in types:
            yield _of_rows(Cause.QUEUE_NOT_SERVED, [row])


def _of_rows(cause: Cause, rows: Sequence[Depth]) -> Finding:
    return Finding(
        level=Level.WARNING,
        cause=cause,
        place=Place.QUEUED_JOBS,
        queues=tuple(dict.fromkeys(row.queue for row in rows)),
        types=tuple(dict.fromkeys(row.type for row in rows)),
        waiting=sum(row.queued for row in rows),
        due=sum(row.due for row in rows),
        is_capped=any(row.capped for row in rows),
        since=min((row.oldest_due_at for row in rows if row.oldest_due_at), default=None),
    )


def _unknown(seen: Reading) -> Iterator[Finding]:
    unserved = seen.unserved_types
    for name in seen.unknown_types:
        if name not in unserved:
            yield Finding(level=Level.WARNING, cause=Cause.TYPE_UNKNOWN, place=Place.QUEUED_JOBS, types=(name,))


def _paused(seen: Reading) -> Iterator[Finding]:
    for one in seen.pauses:
        yield Finding(
            level=Level.NOTICE,
            cause=Cause.PAUSED,
            place=Place.QUEUES,
            queues=(one.name,) if one.scope is Scope.QUEUE else (),
            types=(one.name,) if one.scope is Scope.TYPE else (),
            since=one.paused_at,
            reason=one.reason,
        )


def _overdue(seen: Reading) -> Iterator[Finding]:
    """Find due jobs that wait for long, if no other finding explains it."""
    not_taken = seen.not_taken if seen.alive else seen.depths
    for row in seen.depths:
        if row.oldest_due_at is None or row.paused or row in not_taken:
            continue
        if seen.now - row.oldest_due_at >= OLD:
            yield replace(_of_rows(Cause.OVERDUE, [row]), level=Level.NOTICE)
