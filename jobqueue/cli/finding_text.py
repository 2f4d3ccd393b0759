"""What is wrong with the queue, as the commands tell it: the findings of ``observe.health``, each with what to do."""

from __future__ import annotations

from jobqueue.cli.values import counted, length
from jobqueue.observe.health import Cause, Finding, Reading


def text(one: Finding, seen: Reading) -> str:
    """Write a finding as a sentence; in English, as everything that the commands say."""
    queue, name = (", ".join(names) for names in (one.queues, one.types))
    match one.cause:
        case Cause.QUEUE_FULL:
            capacity = seen.capacity or 1  # it was read, or nothing would be full
            share = one.waiting / capacity
            return f"queue {queue}: {counted(one.waiting)} wait, {share:.0%} of its capacity of {capacity:,}"
        case Cause.NO_WORKER:
            return f"{counted(one.due)} due, and no worker is up: start one with manage.py runworker"
        case Cause.JOB_LEFT_OUT:
            return f"job {one.job} can neither be run nor ended, and worker {one.worker} leaves it out: {one.reason}"
        case Cause.TYPE_NOT_SERVED:
            return f"no live worker knows the type {name}: its jobs wait{_release_note(one, seen)}"
        case Cause.WORKERS_STOPPING:
            return f"the workers that know the type {name} are stopping: its jobs wait{_release_note(one, seen)}"
        case Cause.QUEUE_NOT_SERVED:
            return f"no live worker takes jobs of the type {name} from the queue {queue}: {counted(one.waiting)} wait"
        case Cause.TYPE_UNKNOWN:
            return f"this release has no handler for the type {name}: its jobs wait for one that has"
        case Cause.RELAY_LOST | Cause.RELAY_IDLE:
            return _not_relayed(one, seen)
        case Cause.PAUSED:
            return f"{'queue' if one.queues else 'type'} {queue or name} is paused"
        case Cause.OVERDUE:
            return f"a job of the type {name} in the queue {queue} has been due for {_since(one, seen)}"


def _since(one: Finding, seen: Reading) -> str:
    return "-" if one.since is None else length(seen.now - one.since)


def _release_note(one: Finding, seen: Reading) -> str:
    is_unknown = not set(one.types).isdisjoint(seen.unknown_types)
    return ", and this release has no handler for it either" if is_unknown else ""


def _not_relayed(one: Finding, seen: Reading) -> str:
    oldest = seen.outbox.oldest if seen.outbox else None
    waits = f"{counted(one.waiting)} still to be relayed, the oldest for {length(seen.now - (oldest or seen.now))}"
    if one.cause is Cause.RELAY_IDLE:
        return f"{waits}: is a worker up that relays them? Start one with manage.py runworker"
    return f"{waits}; the shared database has been out of reach for {_since(one, seen)}: {one.reason}"
