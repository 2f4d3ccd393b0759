"""The backlog: the jobs that wait, run or were given up now, of all queues and types or of one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from jobqueue.backends.base import Backend
from jobqueue.observe.metrics import in_progress
from jobqueue.records import COUNTED_TO, MOST_GROUPS, Filter
from jobqueue.states import JobStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """The jobs of this moment. If a number ``is_capped``, there are more. ``oldest`` is how long a due job waited."""

    queued: int
    due: int
    is_capped: bool
    oldest: timedelta | None
    in_progress: int
    dead_letters: int
    is_dead_capped: bool


def backlog(backend: Backend, queue: str = "", type: str = "") -> Backlog:  # noqa: A002 - as the column is called
    """Count the jobs of all, or of one queue or type, as the dashboard does."""
    now, depths = backend.now(), backend.metrics.depths()
    in_part = len(depths) >= MOST_GROUPS
    found = [one for one in depths if queue in ("", one.queue) and type in ("", one.type)]
    moments = [one.oldest_due_at for one in found if one.oldest_due_at]
    dead_letters, is_dead_capped = _dead_letters(backend, queue, type)
    return Backlog(
        queued=sum(one.queued for one in found),
        due=sum(one.due for one in found),
        is_capped=in_part or any(one.capped for one in found),
        oldest=max(now - min(moments), timedelta(0)) if moments else None,
        in_progress=in_progress(found, in_part, queue, type),
        dead_letters=dead_letters,
        is_dead_capped=is_dead_capped,
    )


def _dead_letters(backend: Backend, queue: str, job_type: str) -> tuple[int, bool]:
    rows = backend.health.dead_letters()
    if len(rows) < MOST_GROUPS:
        found = [one for one in rows if queue in ("", one.queue) and job_type in ("", one.type)]
        return sum(one.count for one in found), any(one.capped for one in found)
    queues, types = frozenset({queue} - {""}), frozenset({job_type} - {""})
    dead = Filter(statuses=frozenset({JobStatus.DEAD_LETTER}), queues=queues, types=types)
    count = backend.jobs.count(dead, COUNTED_TO + 1)
    return min(count, COUNTED_TO), count > COUNTED_TO
