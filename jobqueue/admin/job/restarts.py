"""Where the attempts of a job began anew and no operator of the admin did it: their numbers tell."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from jobqueue.admin.job.history import Ended, Past
from jobqueue.models import Job
from jobqueue.states import JobStatus

#: For what goes on.
_STILL = datetime.max.replace(tzinfo=UTC)


def restarts(job: Job, past: Past) -> Iterator[Ended]:
    """Name the attempts behind which they began anew: the next one has a number that it could not have otherwise."""
    following = [(one.number, one.ended_at) for one in past.attempts[1:]]
    for ended, (number, until) in zip(past.attempts, [*following, *_next(job, past)], strict=False):
        least = ended.number if ended.may_repeat else ended.number + 1
        if number < least and not _is_logged(past, ended.ended_at, until):
            yield ended


def _next(job: Job, past: Past) -> list[tuple[int, datetime]]:
    """Number the attempt that has no row of history: to come, running, or completed."""
    if job.status == JobStatus.QUEUED:
        return [(job.attempts + 1, _STILL)]
    has_row = any(one.fence >= job.fence for one in past.attempts)
    return [] if has_row or job.status not in (JobStatus.IN_PROGRESS, JobStatus.COMPLETED) else [(job.attempts, _STILL)]


def _is_logged(past: Past, since: datetime, until: datetime) -> bool:
    return any(since <= deed.done_at <= until for deed in past.deeds)
