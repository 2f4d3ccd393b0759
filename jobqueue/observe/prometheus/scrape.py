"""The scrape: what is read from the database at one moment, by queue and type."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from jobqueue import queues
from jobqueue.backends.base import Backend
from jobqueue.handlers.registry import registry
from jobqueue.observe.health.observation import GRACE
from jobqueue.observe.health.reading import Reading
from jobqueue.observe.health.schedules import LATE
from jobqueue.observe.limits import book_of
from jobqueue.observe.prometheus.names import Names, label
from jobqueue.policy.stretches import Name, together
from jobqueue.records import COUNTED_TO, Depth, Limit, LimitUse, Scope, Tally, WorkerRecord, WorkerState
from jobqueue.records.relay import Waiting

#: How many pairs of queue and type are counted. Those without series of their own are counted too.
COUNTED_KINDS = 2_500
#: The most limits with series of their own.
MOST_LIMITS = 200


@dataclass(slots=True)
class KindState:
    """One queue and type: its attempts so far, and its jobs now. ``oldest`` is in seconds."""

    tally: Tally
    waiting: int = 0
    delayed: int = 0
    active: int = 0
    oldest: float = 0.0
    dead_letters: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueState:
    """One queue. ``unserved`` counts the due jobs that no live worker takes, though they aren't paused."""

    tally: Tally
    paused: bool
    workers: int
    unserved: int
    shed: int
    capacity: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitUsage:
    """A limit, the largest use of any value of its key, and how many of the values are used up."""

    limit: Limit
    in_use: int
    used_up: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Scrape:
    """Everything that was read, by label."""

    names: Names
    kinds: Mapping[Name, KindState]
    queues: Mapping[str, QueueState]
    workers: Mapping[str, int]
    slots: int
    busy: int
    limits: Sequence[LimitUsage]
    late_schedules: int
    capped: int
    outbox: Waiting | None
    now: datetime


def scrape(backend: Backend, outbox_of: Callable[[Backend], Waiting | None]) -> Scrape:
    """Read everything. The cost has a bound that doesn't depend on the number of jobs."""
    depths, counters = backend.metrics.depths(COUNTED_TO, COUNTED_KINDS), backend.metrics.counters()
    dead_letters = backend.health.dead_letters(COUNTED_TO, COUNTED_KINDS)
    outbox = outbox_of(backend)
    seen = Reading(
        now=backend.now(),
        depths=depths,
        pauses=backend.operator.pauses(),
        workers=backend.workers.all(),
        lapsed=backend.health.lapsed_leases(GRACE),
        gauges={one.queue: one for one in backend.gauges.all()},
        dead_letters=dead_letters,
        outbox=outbox,
    )
    ours = [(kind.options.queue, kind.name) for kind in registry]
    jobs = [*((one.queue, one.type) for one in depths), *((one.queue, one.type) for one in dead_letters)]
    counted = [(one.queue, one.type) for one in counters]
    names = Names.of(map(label, _known_queues(seen)), *map(_labels, (counted, ours, jobs)))
    return Scrape(
        names=names,
        kinds=_kinds(names, counters, seen),
        queues=_queues(names, counters, seen),
        workers=_workers(seen),
        slots=sum(one.slots for one in seen.alive),
        busy=sum(one.busy for one in seen.alive),
        limits=_limits(backend, [*ours, *jobs]),
        late_schedules=len(backend.schedules.late(LATE)),
        capped=sum(one.capped for one in depths) + sum(one.capped for one in dead_letters),
        outbox=outbox,
        now=seen.now,
    )


def _labels(pairs: Iterable[Name]) -> list[Name]:
    return [(label(queue), label(kind)) for queue, kind in pairs]


def _known_queues(seen: Reading) -> set[str]:
    """Return the queues that somebody knows of, also those without jobs."""
    served = {name for one in seen.workers for name in one.queues or ()}
    paused = {one.name for one in seen.pauses if one.scope is Scope.QUEUE}
    return served | paused | queues.named() | seen.gauges.keys()


def _kinds(names: Names, counters: Iterable[Tally], seen: Reading) -> dict[Name, KindState]:
    found = {name: KindState(Tally(*name)) for name in sorted(names.kinds)}
    for one in counters:
        name = names.kind(one.queue, one.type)
        found[name].tally = together((found[name].tally, one), name)
    for row in seen.depths:
        state = found[names.kind(row.queue, row.type)]
        state.waiting += row.due
        state.delayed += row.queued - row.due
        state.active += row.in_progress
        if row.oldest_due_at is not None:
            state.oldest = max(state.oldest, (seen.now - row.oldest_due_at).total_seconds())
    for dead in seen.dead_letters:
        found[names.kind(dead.queue, dead.type)].dead_letters += dead.count
    return found


def _queues(names: Names, counters: Iterable[Tally], seen: Reading) -> dict[str, QueueState]:
    tallies: dict[str, list[Tally]] = {name: [] for name in sorted(names.queues)}
    for one in counters:
        tallies[names.queue(one.queue)].append(one)
    paused = {names.queue(one.name) for one in seen.pauses if one.scope is Scope.QUEUE}
    shed, unserved = dict.fromkeys(names.queues, 0), dict.fromkeys(names.queues, 0)
    for gauge in seen.gauges.values():
        shed[names.queue(gauge.queue)] += gauge.shed
    for row in seen.depths:
        unserved[names.queue(row.queue)] += _unserved(row, seen)
    return {
        name: QueueState(
            tally=together(several),
            paused=name in paused,
            workers=sum(_takes_from(one, name, names) for one in seen.alive),
            unserved=unserved[name],
            shed=shed[name],
            capacity=queues.options_of(name).capacity,
        )
        for name, several in tallies.items()
    }


def _unserved(row: Depth, seen: Reading) -> int:
    """Return how many due jobs no live worker takes. Those of an outbox need none here."""
    if row.paused or seen.outbox is not None or any(one.takes(row.queue, row.type) for one in seen.alive):
        return 0
    return row.due


def _takes_from(worker: WorkerRecord, name: str, names: Names) -> bool:
    served = worker.queues is None or name in {names.queue(one) for one in worker.queues}
    return worker.state is WorkerState.RUNNING and served


def _workers(seen: Reading) -> dict[str, int]:
    """Count the workers by their state. A silent one ended without a word."""
    found = dict.fromkeys((*(state.value for state in WorkerState), "silent"), 0)
    for one in seen.alive:
        found[one.state.value] += 1
    return found | {"silent": len(seen.silent)}


def _limits(backend: Backend, pairs: Iterable[Name]) -> list[LimitUsage]:
    book = book_of(backend)
    if not book:
        return []
    wanted = sorted({pair for pair in pairs if book.of(*pair)})[:MOST_LIMITS]
    limits = {limit.place: limit for pair in wanted for limit in book.of(*pair)}
    uses: dict[str, list[LimitUse]] = {place: [] for place in limits}
    for use in backend.limits.uses(book, wanted):
        uses.setdefault(use.limit.place, []).append(use)
    return [
        LimitUsage(
            limit=limit,
            in_use=max((use.used for use in uses[place]), default=0),
            used_up=sum(use.is_used_up for use in uses[place]),
        )
        for place, limit in sorted(limits.items())[:MOST_LIMITS]
    ]
