"""The stretches of time that figures are kept for, and how figures are put together. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from jobqueue.policy.histogram import merged
from jobqueue.records import Depth, Part, Share, Tally
from jobqueue.records.metric import COUNTED_TOGETHER, ENDS

#: How long stretches are, in seconds, and for how long those of each length are kept.
KEPT = {60: timedelta(hours=3), 600: timedelta(days=3), 3600: timedelta(days=30)}

#: So many types, or queues, are told of.
MOST_SHARES = 50

Name = tuple[str, str]

#: The queue and type that stand for all together. A queue with an empty type stands for all types of it.
ALL: Name = ("", "")


class Met(NamedTuple):
    """What was met at one look: jobs that wait and that run, and how many seconds the oldest due one has waited."""

    queued: int = 0
    in_progress: int = 0
    oldest: float | None = None


def begin_of(moment: datetime, span: int) -> datetime:
    """Say when the stretch began that a moment falls into; stretches of one length follow each other since 1970."""
    return datetime.fromtimestamp(moment.timestamp() // span * span, UTC)


def together(several: Iterable[Tally], name: Name = ALL) -> Tally:
    """Add up tallies."""
    parts = list(several)
    counts = {column: sum(getattr(one, column) for one in parts) for column in ENDS}
    waited, ran = merged(one.waited for one in parts), merged(one.ran for one in parts)
    return Tally(*name, **counts, waited=waited, ran=ran)


def by_name(tallies: Iterable[Tally]) -> dict[Name, Tally]:
    """Tell what each queue and type had, each queue with all its types, and all of them together."""
    kinds = _gathered(tallies, lambda one: (one.queue, one.type))
    queues = _gathered(kinds.values(), lambda one: (one.queue, ""))
    return kinds | queues | {ALL: together(queues.values())}


def _gathered(tallies: Iterable[Tally], name_of: Callable[[Tally], Name]) -> dict[Name, Tally]:
    parts: dict[Name, list[Tally]] = {}
    for one in tallies:
        parts.setdefault(name_of(one), []).append(one)
    return {name: together(several, name) for name, several in parts.items()}


def shares(parts: Iterable[Part]) -> list[Share]:
    """Tell the share of each; those first of which most attempts ended, and what is too small to be seen not."""
    ended = [(sum(getattr(part, column) for column in ENDS), part) for part in parts]
    largest = sorted((one for one in ended if one[0]), key=lambda one: (-one[0], one[1].name))
    return [_share(part) for _number, part in largest[:MOST_SHARES]]


def _share(part: Part) -> Share:
    return Share(*part[:-2], mean_ran=part.ran_for / part.ran if part.ran else None)


def shared(cap: int, groups: int) -> int:
    """Say how far to count each of many groups, so that counting all of them costs no more than counting ten."""
    return min(cap, max(1, COUNTED_TOGETHER // max(1, groups)))


def spread(cap: int, each: int, counts: Sequence[int]) -> int:
    """Say how far to count anew where some were cut off: what the small ones leave goes to the large."""
    cut = sum(count > each for count in counts)
    left = COUNTED_TOGETHER - sum(count for count in counts if count <= each)
    return max(each, min(cap, left // cut)) if cut else each


def met(depths: Iterable[Depth], now: datetime) -> dict[Name, Met]:
    """Tell what was met of each queue and type, of each queue with all its types, and of all of them together."""
    kinds = {(one.queue, one.type): Met(one.queued, one.in_progress, _age(one, now)) for one in depths}
    queues: dict[Name, list[Met]] = {}
    for (queue, _type), one in kinds.items():
        queues.setdefault((queue, ""), []).append(one)
    return kinds | {name: met_in(several) for name, several in queues.items()} | {ALL: met_in(kinds.values())}


def met_in(several: Iterable[Met]) -> Met:
    """Add up what was met; the oldest is the oldest of all."""
    parts = list(several)
    ages = [one.oldest for one in parts if one.oldest is not None]
    return Met(sum(one.queued for one in parts), sum(one.in_progress for one in parts), max(ages, default=None))


def _age(depth: Depth, now: datetime) -> float | None:
    return None if depth.oldest_due_at is None else max(0.0, (now - depth.oldest_due_at).total_seconds())
