"""Findings about the flow of jobs: full, paused and stalled queues, floods, stuck jobs, and the relay."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

from jobqueue.observe.health.finding import Cause, Finding, Level, Place
from jobqueue.observe.health.reading import Reading, queue_states
from jobqueue.observe.health.workers import of_rows
from jobqueue.policy.alerts.rules import OFF
from jobqueue.records import Depth, PauseRecord, QueueOptions, Scope

#: A queue in which nothing ends for this long, while jobs are due, is stalled.
STALLED_FOR = timedelta(minutes=15)
#: A pause that keeps due jobs waiting for this long is forgotten.
FORGOTTEN_AFTER = timedelta(hours=1)
#: A job that reports progress, and then nothing for this long, is stuck.
STUCK_FOR = timedelta(minutes=10)
#: A tenant floods a queue if it has this share of at least so many due jobs, which have waited for this long.
FLOOD_SHARE, FLOOD_AT, FLOOD_FOR = 0.8, 1_000, timedelta(minutes=5)
#: Jobs that wait longer than this, while the shared database isn't known to be lost, have no relay.
RELAYED_WITHIN = timedelta(minutes=1)


def queue_full(seen: Reading) -> Iterator[Finding]:
    """Find the queues that are nearly full, or full."""
    for state in queue_states(seen):
        if state.level is not Level.OK:
            yield Finding(
                level=state.level,
                cause=Cause.QUEUE_FULL,
                place=Place.QUEUED_JOBS,
                queues=(state.name,),
                jobs=state.depth,
                due=state.depth - state.delayed,
                is_capped=state.is_capped,
                capacity=state.capacity,
                share=state.share,
                reason=state.when_full.value,
            )


def relay_lost(seen: Reading) -> Iterator[Finding]:
    """Find jobs that can't be relayed because the shared database is out of reach."""
    outbox = seen.outbox
    if outbox is not None and outbox.count and outbox.lost_at is not None:
        yield Finding(
            level=Level.WARNING,
            cause=Cause.RELAY_LOST,
            place=Place.QUEUED_JOBS,
            jobs=outbox.count,
            since=outbox.lost_at,
            reason=outbox.error,
        )


def relay_idle(seen: Reading) -> Iterator[Finding]:
    """Find jobs that have waited too long to be relayed."""
    outbox = seen.outbox
    if outbox is None or not outbox.count or outbox.lost_at is not None or outbox.oldest is None:
        return
    if seen.now - outbox.oldest > RELAYED_WITHIN:
        yield Finding(
            level=Level.WARNING,
            cause=Cause.RELAY_IDLE,
            place=Place.QUEUED_JOBS,
            jobs=outbox.count,
            since=outbox.oldest,
        )


def pause_forgotten(seen: Reading) -> Iterator[Finding]:
    """Find pauses that have kept due jobs waiting for long."""
    for one in seen.pauses:
        if _is_forgotten(one, seen):
            yield replace(_paused(one, seen), level=Level.WARNING, cause=Cause.PAUSE_FORGOTTEN)


def paused(seen: Reading) -> Iterator[Finding]:
    """Find the other pauses."""
    for one in seen.pauses:
        if not _is_forgotten(one, seen):
            yield _paused(one, seen)


def _is_forgotten(pause: PauseRecord, seen: Reading) -> bool:
    return seen.now - pause.paused_at >= FORGOTTEN_AFTER and any(row.due for row in _of_pause(pause, seen))


def _of_pause(pause: PauseRecord, seen: Reading) -> list[Depth]:
    return [row for row in seen.depths if pause.name == (row.queue if pause.scope is Scope.QUEUE else row.type)]


def _paused(pause: PauseRecord, seen: Reading) -> Finding:
    return replace(
        of_rows(Cause.PAUSED, _of_pause(pause, seen), Level.NOTICE),
        place=Place.QUEUES,
        queues=(pause.name,) if pause.scope is Scope.QUEUE else (),
        types=(pause.name,) if pause.scope is Scope.TYPE else (),
        since=pause.paused_at,
        reason=pause.reason,
    )


def queue_stalled(seen: Reading) -> Iterator[Finding]:
    """Find the queues with due jobs in which nothing has ended for long, although a live worker serves them."""
    for queue in dict.fromkeys(row.queue for row in seen.depths):
        rows = [row for row in _waiting_for_turn(seen, STALLED_FOR) if row.queue == queue]
        if rows and _is_stalled(queue, seen):
            yield of_rows(Cause.QUEUE_STALLED, rows)


def overdue(seen: Reading) -> Iterator[Finding]:
    """Find due jobs that wait for longer than a rule says, if no other finding explains it."""
    for row in _waiting_for_turn(seen, timedelta(0)):
        rule, waited = seen.rules.rule(Cause.OVERDUE, row.queue, row.type), _waited(row, seen)
        longest = rule.threshold if rule.threshold is not None and rule.level != OFF else float("inf")
        if waited >= longest and not _is_stalled(row.queue, seen):
            found = of_rows(Cause.OVERDUE, [row], Level[rule.level.upper()])
            yield replace(found, measured=waited, threshold=longest)


def _waited(row: Depth, seen: Reading) -> float:
    """Return how many seconds the oldest due job has waited."""
    return 0.0 if row.oldest_due_at is None else (seen.now - row.oldest_due_at).total_seconds()


def _waiting_for_turn(seen: Reading, length: timedelta) -> list[Depth]:
    """List the jobs that have been due for so long although a live worker takes such jobs."""
    not_taken = seen.not_taken
    withheld = {(one.queue, one.type) for one in seen.withheld}  # another finding names the limit
    served = [row for row in seen.depths if not row.paused and row not in not_taken] if seen.alive else []
    served = [row for row in served if (row.queue, row.type) not in withheld and row.queue not in seen.stopped_queues]
    return [row for row in served if row.oldest_due_at is not None and seen.now - row.oldest_due_at >= length]


def _is_stalled(queue: str, seen: Reading) -> bool:
    return seen.moving is not None and queue not in seen.moving


def progress_stuck(seen: Reading) -> Iterator[Finding]:
    """Find running jobs that reported progress and then nothing for long."""
    held = {one.owner for one in seen.held_by_dead}
    for job in seen.quiet:
        if job.owner not in held and seen.now - job.since >= STUCK_FOR:
            yield Finding(
                level=Level.WARNING,
                cause=Cause.PROGRESS_STUCK,
                place=Place.JOB,
                job=job.id,
                types=(job.type,),
                queues=(job.queue,),
                jobs=1,
                since=job.since,
            )


def tenant_flood(seen: Reading) -> Iterator[Finding]:
    """Find tenants whose jobs are most of what waits for long. In a fair queue, they delay nobody."""
    for row in seen.depths:
        if seen.options.get(row.queue, QueueOptions()).fair:
            continue
        sample = seen.tenants.get((row.queue, row.type), {})
        tenant, count = max(sample.items(), key=lambda one: one[1], default=("", 0))
        if tenant and count >= FLOOD_SHARE * sum(sample.values()):
            found = of_rows(Cause.TENANT_FLOOD, [row])
            yield replace(found, tenant=tenant, share=count / sum(sample.values()))
