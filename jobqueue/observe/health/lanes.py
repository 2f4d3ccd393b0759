"""Findings about lanes: strict ones that have stopped at a dead letter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from jobqueue.backends.base import Backend
from jobqueue.backends.ports.lanes import MOST_COUNTED
from jobqueue.observe.health.finding import Cause, Finding, Level, Place
from jobqueue.observe.health.flow import STALLED_FOR
from jobqueue.observe.health.reading import MOST_LANES, Reading
from jobqueue.observe.lanes import lanes_of
from jobqueue.records import Depth, LaneRecord, QueueOptions

#: Of how many strict queues with a backlog the lanes are read.
_SAMPLED = 5


def strict_lanes(
    backend: Backend, depths: Sequence[Depth], options: Mapping[str, QueueOptions], now: datetime
) -> list[LaneRecord]:
    """Read the lanes of strict queues in which jobs have been due for long. Without such queues, read nothing."""
    strict = [row for row in depths if row.oldest_due_at and not row.paused and options[row.queue].strict]
    late = [row for row in strict if row.oldest_due_at and now - row.oldest_due_at >= STALLED_FOR]
    longest = sorted(late, key=lambda row: row.oldest_due_at or now)
    queues = list(dict.fromkeys(row.queue for row in longest))[:_SAMPLED]
    return [one for one in lanes_of(backend, queues, MOST_LANES) if one.depth] if queues else []


def lane_stopped(seen: Reading) -> Iterator[Finding]:
    """Find the strict lanes in which jobs wait behind a dead letter."""
    for one in seen.lanes:
        if one.hold is not None and one.is_stopped:
            yield Finding(
                level=Level.WARNING,
                cause=Cause.LANE_STOPPED,
                place=Place.JOB,
                job=one.hold.id,
                queues=(one.queue,),
                jobs=one.depth,
                is_capped=one.depth >= MOST_COUNTED,
            )
