"""Which running jobs are stuck, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from jobqueue.backends.base import Backend
from jobqueue.handlers.registry import registry
from jobqueue.observe.health.flow import STUCK_FOR
from jobqueue.observe.health.observation import GRACE
from jobqueue.records import WorkerRecord
from jobqueue.records.outstanding import RunningJob
from jobqueue.records.worker import SILENT_FOR

#: How many running jobs are looked at.
LOOKED_AT = 5_000
#: A worker ends a job some seconds after its time limit, or after it was cancelled. This is longer.
STOPS_WITHIN = timedelta(minutes=1)


class StuckReason(StrEnum):
    """Why a job is stuck, the gravest reason first. The values are stable codes."""

    LEFT_OUT = "left_out"
    LEASE_ENDED = "lease_ended"
    WORKER_SILENT = "worker_silent"
    OVER_TIME = "over_time"
    NOT_STOPPING = "not_stopping"
    NO_PROGRESS = "no_progress"


class StuckJob(NamedTuple):
    """A stuck job: the reason, and since when it applies. Of a job that was left out, only a few things are known."""

    id: str
    type: str
    queue: str
    worker: str
    reason: StuckReason
    since: datetime | None
    detail: str = ""


class StuckJobs(NamedTuple):
    """The stuck jobs, those with the gravest reason first. If ``is_part``, only some running jobs were looked at."""

    jobs: list[StuckJob]
    looked_at: int
    is_part: bool


def stuck_jobs(backend: Backend) -> StuckJobs:
    """Find the running jobs that don't get on, and the jobs that workers can neither run nor end."""
    running, workers = backend.outstanding.running(LOOKED_AT), backend.workers.all()
    now = backend.now()  # after the reading, so that no lease was renewed later
    by_owner = {one.owner: one for one in workers}
    found = [*_left_out(workers, now), *filter(None, (_judged(one, by_owner, now) for one in running))]
    order = {reason: place for place, reason in enumerate(StuckReason)}
    found.sort(key=lambda one: (order[one.reason], one.since or now))
    return StuckJobs(found, len(running), len(running) >= LOOKED_AT)


def _left_out(workers: Sequence[WorkerRecord], now: datetime) -> Iterator[StuckJob]:
    for worker in workers:
        for job_id, why in worker.left_out.items() if worker.is_alive(now) else ():
            yield StuckJob(job_id, "", "", worker.name, StuckReason.LEFT_OUT, None, why)


def _judged(job: RunningJob, workers: Mapping[str, WorkerRecord], now: datetime) -> StuckJob | None:
    worker = workers.get(job.owner)
    for reason, since in _reasons(job, worker, now):
        name = job.owner if worker is None else worker.name
        return StuckJob(job.id, job.type, job.queue, name, reason, since)
    return None


def _reasons(job: RunningJob, worker: WorkerRecord | None, now: datetime) -> Iterator[tuple[StuckReason, datetime]]:
    if job.lease_until is not None and now - job.lease_until > GRACE:
        yield StuckReason.LEASE_ENDED, job.lease_until
    if worker is not None and now - worker.seen_at > SILENT_FOR:
        yield StuckReason.WORKER_SILENT, worker.seen_at
    limit = _limit(job)
    if job.started_at is not None and limit is not None and now - job.started_at > limit + STOPS_WITHIN:
        yield StuckReason.OVER_TIME, job.started_at + limit
    if job.cancel_requested_at is not None and now - job.cancel_requested_at > STOPS_WITHIN:
        yield StuckReason.NOT_STOPPING, job.cancel_requested_at
    is_of_this_attempt = job.started_at is not None and job.updated_at > job.started_at
    if job.reports and is_of_this_attempt and now - job.updated_at > STUCK_FOR:
        yield StuckReason.NO_PROGRESS, job.updated_at


def _limit(job: RunningJob) -> timedelta | None:
    """Return the time limit of an attempt, if this release knows it."""
    if job.timeout is not None:
        return job.timeout
    return registry.get(job.type).timeout if job.type in registry.names else None
