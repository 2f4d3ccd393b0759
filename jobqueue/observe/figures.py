"""Figures for those who look at the queue: what happened in the last hour, day or week, and what waits now.

What happened is read from the stretches that workers keep, never from the jobs: an hour of all, or of one queue, costs
sixty rows, a week 168. Only a type that is in several queues has rows to be added up, and so has who had how much.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from jobqueue import backends
from jobqueue.policy.histogram import percentile
from jobqueue.policy.stretches import begin_of, shares, together
from jobqueue.records import Depth, Lengths, Scope, Share, Stretch, Tally
from jobqueue.records.metric import ENDS, success

__all__ = ["WINDOWS", "Depth", "Figures", "Point", "Share", "Times", "Window", "depths", "figures"]


class Window(NamedTuple):
    """How far to look back, and how long the stretches are that are told apart."""

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


class Times(NamedTuple):
    """The 50th, 95th and 99th percentiles, in seconds, within 10 %."""

    p50: float | None
    p95: float | None
    p99: float | None


class Point(NamedTuple):
    """What happened in one stretch of time, and the depth that was last met in it: ``None`` where nobody looked."""

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


class Figures(NamedTuple):
    """A window: a point for each stretch, the oldest first, and the whole of it, with the depth that was met last."""

    window: Window
    points: tuple[Point, ...]
    total: Point
    success: float | None
    by_type: tuple[Share, ...]
    by_queue: tuple[Share, ...]


def figures(window: Window, queue: str = "", type: str = "") -> Figures:  # noqa: A002 - as the column is called
    """Tell what happened in a window that ends now, of one queue, of one type, or of everything."""
    backend, span = backends.current(), int(window.span.total_seconds())
    since = begin_of(backend.now(), span) + window.span - window.length
    stretches = of_all = backend.tallied(span, since)
    if queue or type:
        # Where somebody looked and met nothing of these there was none, and no row says so.
        looked = [one for one in of_all if one.queued is not None]
        nothing = [Stretch(one.begins_at, Tally(queue, type), queued=0, in_progress=0) for one in looked]
        stretches = nothing + backend.tallied(span, since, queue, type)
    found: dict[datetime, list[Stretch]] = {since + place * window.span: [] for place in range(_count(window))}
    for one in stretches:
        found.get(one.begins_at, []).append(one)
    summed = [_summed(moment, several) for moment, several in found.items()]
    total = _whole(summed)
    return Figures(
        window,
        points=tuple(_point(one) for one in summed),
        total=_point(total),
        success=success(total.tally.completed, total.tally.dead_lettered),
        by_type=tuple(shares(backend.parts(Scope.TYPE, span, since, queue, type))),
        by_queue=tuple(shares(backend.parts(Scope.QUEUE, span, since, queue, type))),
    )


def depths() -> list[Depth]:
    """Count what waits and runs now, by queue and type, as far as it is worth it."""
    return backends.current().depths()


def _count(window: Window) -> int:
    return window.length // window.span


def _summed(begins_at: datetime, several: Sequence[Stretch]) -> Stretch:
    """Put together what is known of one stretch of time: that somebody looked, and what was found."""
    met = [one for one in several if one.queued is not None]
    return Stretch(
        begins_at,
        together(one.tally for one in several),
        queued=sum(one.queued or 0 for one in met) if met else None,
        in_progress=sum(one.in_progress or 0 for one in met) if met else None,
        oldest=max((one.oldest for one in met if one.oldest is not None), default=None),
    )


def _whole(summed: Sequence[Stretch]) -> Stretch:
    """Put stretches together that follow each other; the depth is what was met last."""
    last = next((one for one in reversed(summed) if one.queued is not None), summed[-1])
    return last._replace(begins_at=summed[0].begins_at, tally=together(one.tally for one in summed))


def _point(one: Stretch) -> Point:
    counts = {name: getattr(one.tally, name) for name in ENDS}
    return Point(
        one.begins_at,
        **counts,
        waited=_times(one.tally.waited),
        ran=_times(one.tally.ran),
        queued=one.queued,
        in_progress=one.in_progress,
        oldest=one.oldest,
    )


def _times(lengths: Lengths) -> Times:
    return Times(*(percentile(lengths.buckets, share) for share in (0.5, 0.95, 0.99)))
