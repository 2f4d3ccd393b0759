"""Metrics: the attempts of the last hour, day or week, and the jobs that wait now.

The past is read from the stretches that workers store, never from the jobs. An hour of all jobs or of one queue takes
60 rows, a week 168. More rows are read for a type in several queues, and for the shares of types and queues.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from jobqueue import backends
from jobqueue.errors import InvalidOption
from jobqueue.policy.histogram import percentile
from jobqueue.policy.stretches import KEPT, begin_of, shares, together
from jobqueue.records import COUNTED_TO, Depth, Filter, Lengths, Scope, Share, Stretch, Tally
from jobqueue.records.metric import ENDS, success
from jobqueue.states import JobStatus

__all__ = ["WINDOWS", "Depth", "Figures", "Point", "Share", "Times", "Window", "depths", "figures", "in_progress"]


class Window(NamedTuple):
    """A window of time up to now, and the length of its stretches."""

    name: str
    length: timedelta
    span: timedelta


WINDOWS = {
    one.name: one
    for one in (
        Window("hour", timedelta(hours=1), timedelta(minutes=1)),
        Window("day", timedelta(days=1), timedelta(minutes=10)),
        Window("week", timedelta(days=7), timedelta(hours=1)),
    )
}


def window_of(length: timedelta) -> Window:
    """Return a window of any length for which stretches are kept. Raise InvalidOption for others."""
    for window in WINDOWS.values():
        if window.length == length:
            return window
    for span, kept in KEPT.items():
        if timedelta(0) < length <= kept and not length % timedelta(seconds=span):
            return Window(str(length), length, timedelta(seconds=span))
    raise InvalidOption(
        "--window", "must be whole minutes up to 3 hours, whole ten minutes up to 3 days, or whole hours up to 30 days"
    )


class Times(NamedTuple):
    """The 50th, 95th and 99th percentiles, in seconds, within 10 %."""

    p50: float | None
    p95: float | None
    p99: float | None


class Point(NamedTuple):
    """The attempts of one stretch, and the last depth measured in it, or ``None`` if it wasn't measured.

    ``shed`` counts the jobs that were shed since the stretch before.
    """

    begins_at: datetime
    completed: int
    retried: int
    dead_lettered: int
    stopped: int
    lost: int
    waited: Times
    ran: Times
    queued: int | None
    in_progress: int | None
    oldest: float | None
    shed: int = 0


class Figures(NamedTuple):
    """The metrics of a window: a point for each stretch, the oldest first, and the total with the last depth."""

    window: Window
    points: tuple[Point, ...]
    total: Point
    success: float | None
    by_type: tuple[Share, ...]
    by_queue: tuple[Share, ...]


def figures(window: Window, queue: str = "", type: str = "") -> Figures:  # noqa: A002 - as the column is called
    """Read the metrics of all jobs, or of one queue or type, in a window that ends now."""
    backend, span = backends.current(), int(window.span.total_seconds())
    since = begin_of(backend.now(), span) + window.span - window.length
    stretches = of_all = backend.metrics.stretches(span, since)
    if queue or type:
        # A measured depth of zero has no row, so it is inferred from the rows of all jobs.
        looked = [one for one in of_all if one.queued is not None]
        nothing = [Stretch(one.begins_at, Tally(queue, type), queued=0, in_progress=0) for one in looked]
        stretches = nothing + backend.metrics.stretches(span, since, queue, type)
    found: dict[datetime, list[Stretch]] = {since + place * window.span: [] for place in range(_count(window))}
    for one in stretches:
        found.get(one.begins_at, []).append(one)
    summed = [_summed(moment, several) for moment, several in found.items()]
    total, shed = _whole(summed), _shed(summed)
    return Figures(
        window,
        points=tuple(_point(one, number) for one, number in zip(summed, shed, strict=True)),
        total=_point(total, sum(shed)),
        success=success(total.tally.completed, total.tally.dead_lettered),
        by_type=tuple(shares(backend.metrics.totals(Scope.TYPE, span, since, queue, type))),
        by_queue=tuple(shares(backend.metrics.totals(Scope.QUEUE, span, since, queue, type))),
    )


def depths() -> list[Depth]:
    """Count queued and running jobs by queue and type, up to a cap."""
    return backends.current().metrics.depths()


def in_progress(found: Sequence[Depth], in_part: bool, queue: str = "", type: str = "") -> int:  # noqa: A002
    """Count the running jobs of a queue, of a type, or of all. Depths that are told in part don't have all of them."""
    if not in_part:
        return sum(one.in_progress for one in found)
    queues, types = frozenset({queue} - {""}), frozenset({type} - {""})
    running = Filter(statuses=frozenset({JobStatus.IN_PROGRESS}), queues=queues, types=types)
    return backends.current().jobs.count(running, COUNTED_TO)


def _count(window: Window) -> int:
    return window.length // window.span


def _summed(begins_at: datetime, several: Sequence[Stretch]) -> Stretch:
    """Add up the rows of one stretch. The depth is ``None`` if no row has one."""
    met = [one for one in several if one.queued is not None]
    return Stretch(
        begins_at,
        together(one.tally for one in several),
        queued=sum(one.queued or 0 for one in met) if met else None,
        in_progress=sum(one.in_progress or 0 for one in met) if met else None,
        oldest=max((one.oldest for one in met if one.oldest is not None), default=None),
        shed=max((one.shed for one in met if one.shed is not None), default=None),
    )


def _shed(summed: Sequence[Stretch]) -> list[int]:
    """Return how many jobs were shed in each stretch, from totals that stretches without a sample don't have."""
    found, before = [], None
    for one in summed:
        found.append(0 if one.shed is None or before is None else max(0, one.shed - before))
        before = before if one.shed is None else one.shed
    return found


def _whole(summed: Sequence[Stretch]) -> Stretch:
    """Add up consecutive stretches. The depth is the last one measured."""
    last = next((one for one in reversed(summed) if one.queued is not None), summed[-1])
    return last._replace(begins_at=summed[0].begins_at, tally=together(one.tally for one in summed))


def _point(one: Stretch, shed: int) -> Point:
    counts = {name: getattr(one.tally, name) for name in ENDS}
    return Point(
        one.begins_at,
        **counts,
        waited=_times(one.tally.waited),
        ran=_times(one.tally.ran),
        queued=one.queued,
        in_progress=one.in_progress,
        oldest=one.oldest,
        shed=shed,
    )


def _times(lengths: Lengths) -> Times:
    return Times(*(percentile(lengths.buckets, share) for share in (0.5, 0.95, 0.99)))
