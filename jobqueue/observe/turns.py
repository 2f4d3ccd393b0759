"""Whose turn it is in fair queues, by this release's settings."""

from __future__ import annotations

from jobqueue import queues
from jobqueue.backends.base import Backend
from jobqueue.records import JobRecord, TurnPlace, TurnShare
from jobqueue.states import JobStatus


def place_of(backend: Backend, job: JobRecord) -> TurnPlace | None:
    """Return what is due before a job of a fair queue, or ``None`` if the job takes no turn."""
    options = queues.options_of(job.queue)
    if options.fair is None or job.status is not JobStatus.QUEUED or job.scheduled_at > backend.now():
        return None
    return backend.turns.place_of(job, options)


def shares(backend: Backend, queue: str, most: int = 20) -> list[TurnShare] | None:
    """Return who has which share of a queue, or ``None`` if it isn't fair."""
    options = queues.options_of(queue)
    return None if options.fair is None else backend.turns.shares(queue, options, most)
