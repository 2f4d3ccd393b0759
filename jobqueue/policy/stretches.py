"""The stretches of time that metrics are kept for, and their aggregation. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from jobqueue.policy.histogram import merged
from jobqueue.records import Depth, MetricSum, Share, Tally
from jobqueue.records.gauge import Gauge
from jobqueue.records.metric import COUNTED_TOGETHER, ENDS

#: How long the stretches of each length, in seconds, are kept.
KEPT = {60: timedelta(hours=3), 600: timedelta(days=3), 3600: timedelta(days=30)}

#: The most types or queues in a report.
MOST_SHARES = 50
#: The largest number that the column holds.
_MOST_SHED = 2**63 - 1

Name = tuple[str, str]

#: The queue and type of the total of everything. A queue with an empty type is the total of that queue.
ALL: Name = ("", "")


class Met(NamedTuple):
    """A sample of the depth: queued and running jobs, and the waiting time of the oldest due one in seconds.

    ``shed`` is how many jobs a queue has shed until now. Types have no such number.
    """

    queued: int = 0
    in_progress: int = 0
    oldest: float | None = None
    shed: int | None = None


def begin_of(moment: datetime, span: int) -> datetime:
    """Return the beginning of the stretch that contains a moment. Stretches are counted from 1970."""
    return datetime.fromtimestamp(moment.timestamp() // span * span, UTC)


def together(several: Iterable[Tally], name: Name = ALL) -> Tally:
    """Return the sum of tallies."""
    parts = list(several)
    counts = {column: sum(getattr(one, column) for one in parts) for column in ENDS}
    waited, ran = merged(one.waited for one in parts), merged(one.ran for one in parts)
    return Tally(*name, **counts, waited=waited, ran=ran, attempts=merged(one.attempts for one in parts))


def by_name(tallies: Iterable[Tally]) -> dict[Name, Tally]:
    """Return the tallies of each queue and type, of each queue, and of everything."""
    kinds = _gathered(tallies, lambda one: (one.queue, one.type))
    queues = _gathered(kinds.values(), lambda one: (one.queue, ""))
    return kinds | queues | {ALL: together(queues.values())}


def _gathered(tallies: Iterable[Tally], name_of: Callable[[Tally], Name]) -> dict[Name, Tally]:
    parts: dict[Name, list[Tally]] = {}
    for one in tallies:
        parts.setdefault(name_of(one), []).append(one)
    return {name: together(several, name) for name, several in parts.items()}


def shares(parts: Iterable[MetricSum]) -> list[Share]:
    """Return the shares of the parts with ended attempts, the largest first, up to ``MOST_SHARES``."""
    ended = [(sum(getattr(part, column) for column in ENDS), part) for part in parts]
    largest = sorted((one for one in ended if one[0]), key=lambda one: (-one[0], one[1].name))
    return [_share(part) for _number, part in largest[:MOST_SHARES]]


def _share(part: MetricSum) -> Share:
    return Share(*part[:-2], mean_ran=part.ran_for / part.ran if part.ran else None)


def shared(cap: int, groups: int, together: int = COUNTED_TOGETHER) -> int:
    """Return the counting limit of each group, so that no more than ``together`` are counted in all."""
    return min(cap, max(1, together // max(1, groups)))


def spread(cap: int, each: int, counts: Sequence[int], together: int = COUNTED_TOGETHER) -> int:
    """Return a higher limit for the groups that were cut off, if the smaller groups left some of the total unused."""
    cut = sum(count > each for count in counts)
    left = together - sum(count for count in counts if count <= each)
    return max(each, min(cap, left // cut)) if cut else each


def met(depths: Iterable[Depth], now: datetime, gauges: Iterable[Gauge] = ()) -> dict[Name, Met]:
    """Return the samples of each queue and type, of each queue, and of everything."""
    shed = {one.queue: one.shed for one in gauges if one.shed > 0}
    kinds = {(one.queue, one.type): Met(one.queued, one.in_progress, _age(one, now)) for one in depths}
    queues: dict[Name, list[Met]] = {}
    for (queue, _type), one in kinds.items():
        queues.setdefault((queue, ""), []).append(one)
    # A queue that sheds has a row even if it has no jobs any more.
    places = {*queues, *((queue, "") for queue in shed)}
    sums = {name: met_in(queues.get(name, ()))._replace(shed=shed.get(name[0], 0)) for name in places}
    return kinds | sums | {ALL: met_in(kinds.values())._replace(shed=min(sum(shed.values()), _MOST_SHED))}


def met_in(several: Iterable[Met]) -> Met:
    """Return the sum of samples, with the longest waiting time of all."""
    parts = list(several)
    ages = [one.oldest for one in parts if one.oldest is not None]
    shed = [one.shed for one in parts if one.shed is not None]
    queued, in_progress = sum(one.queued for one in parts), sum(one.in_progress for one in parts)
    return Met(queued, in_progress, max(ages, default=None), sum(shed) if shed else None)


def _age(depth: Depth, now: datetime) -> float | None:
    return None if depth.oldest_due_at is None else max(0.0, (now - depth.oldest_due_at).total_seconds())
