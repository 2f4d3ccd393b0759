"""What the numbers of a job's attempts tell: restarts that the admin's log doesn't have, and attempts not counted."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from jobqueue.admin.job.history import EndedAttempt, Past
from jobqueue.models import Job
from jobqueue.states import JobStatus

#: The end of an attempt that hasn't ended.
_STILL = datetime.max.replace(tzinfo=UTC)


def restarts(job: Job, past: Past) -> Iterator[EndedAttempt]:
    """Yield the attempts that a restart followed: without one, the next number would be higher."""
    following = [(one.number, one.ended_at) for one in past.attempts[1:]]
    for ended, (number, until) in zip(past.attempts, [*following, *_next(job, past)], strict=False):
        least = ended.number if ended.may_repeat else ended.number + 1
        if number < least and not _is_logged(past, ended.ended_at, until):
            yield ended


def uncounted(job: Job, past: Past) -> Iterator[EndedAttempt]:
    """Yield the attempts that were given back, because the next one has the same number."""
    following = [(one.number, one.ended_at) for one in past.attempts[1:]]
    after_last = _next(job, past) or [(job.attempts + 1, _STILL)]
    for ended, (number, until) in zip(past.attempts, [*following, *after_last], strict=False):
        if ended.may_repeat and number == ended.number and not _is_logged(past, ended.ended_at, until):
            yield ended


def _next(job: Job, past: Past) -> list[tuple[int, datetime]]:
    """Number the attempt without a history row: the next one, the running one, or the one that completed."""
    if job.status == JobStatus.QUEUED:
        return [(job.attempts + 1, _STILL)]
    has_row = any(one.fence >= job.fence for one in past.attempts)
    return [] if has_row or job.status not in (JobStatus.IN_PROGRESS, JobStatus.COMPLETED) else [(job.attempts, _STILL)]


def _is_logged(past: Past, since: datetime, until: datetime) -> bool:
    return any(since <= action.done_at <= until for action in past.actions)
