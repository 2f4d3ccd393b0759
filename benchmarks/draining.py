"""The speed of a whole worker with no-op jobs, for threads and coroutines, and the best settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from statistics import median
from typing import Any

from django.db import connection
from django.db.models import Count, Max, Min

from benchmarks import timing
from benchmarks.cycling import drain_raw
from benchmarks.databases import Place
from benchmarks.jobs import Resize, resize_image, resize_soon
from benchmarks.raw import Crowd
from benchmarks.report import Figure, Goal, Value
from benchmarks.site import REPETITIONS, Site
from benchmarks.variants import RawDurable, durable
from benchmarks.workers import rows, until, worker_at
from jobqueue import backends
from jobqueue.api.handler import Handler
from jobqueue.records import Scope

QUEUE = "default"
PATIENCE = 600.0
_CHUNK = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The settings of a worker, and whether its SQLite syncs every commit."""

    slots: int
    processes: int = 1
    coroutines: bool = False
    durable: bool = False

    def __str__(self) -> str:
        times = f"{self.processes} x " if self.processes > 1 else ""
        kind = "coroutines" if self.coroutines else "threads"
        return f"{times}{self.slots} {kind}{', synchronous=FULL' if self.durable else ''}"


@dataclass(frozen=True, slots=True)
class Drained:
    """The result of a drain: jobs per second, and microseconds of CPU time per job."""

    rate: float
    supervisor: float
    executors: float


#: A drain by the worker, and jobs per second by the bare SQL right after it.
Turn = tuple[Drained, float]

#: Jobs per second to reach, and what the bare SQL did by as many on the machine they were set for.
DRAINS = {
    "sqlite": {
        Setting(slots=10): Goal(10_000, beside=60_800),
        Setting(slots=50): Goal(35_000, beside=79_200),
        Setting(slots=50, durable=True): Goal(20_000, beside=68_000),
    },
    "postgres": {
        Setting(slots=10): Goal(4_000, beside=17_000),
        Setting(slots=50): Goal(18_000, beside=44_500),
    },
}
CANDIDATES = (
    Setting(slots=200),
    Setting(slots=200, coroutines=True),
    Setting(slots=500, coroutines=True),
    Setting(slots=250, coroutines=True, processes=2),
)
BEST = {"sqlite": Goal(50_000, beside=100_000), "postgres": Goal(45_000, beside=57_400)}


def drains(site: Site) -> Iterator[Figure]:
    """Drain 20,000 no-op jobs with a whole worker of 10 and of 50 threads, with their CPU time."""
    count = site.size(20_000, 2_000)
    for setting, goal in DRAINS[site.place.vendor].items():
        turns = [_turn(site, setting, count) for _ in range(site.size(REPETITIONS, 1))]
        yield _figure(site, setting, count, turns, goal)
        yield _cpu(site, setting, turns)


def best(site: Site) -> Iterator[Figure]:
    """Drain 20,000 no-op jobs with many threads, coroutines and processes, to find the best setting."""
    count = site.size(20_000, 2_000)
    tried: dict[Setting, list[Turn]] = {setting: [] for setting in CANDIDATES}
    for _ in range(REPETITIONS):
        for setting, turns in tried.items():
            turns.append(_turn(site, setting, count))
    for setting, turns in tried.items():
        yield _figure(site, setting, count, turns)
        yield _cpu(site, setting, turns)
    setting = max(tried, key=lambda one: median(run.rate for run, _ in tried[one]))
    yield _figure(site, f"best: {setting}", count, tried[setting], BEST[site.place.vendor])


def drained(place: Place, handler: Handler[..., Any, ...], payloads: Sequence[object], **options: Any) -> Drained:
    """Fill empty tables and drain them with a worker, timed from when it is up."""
    backend = backends.current()
    backend.operator.pause(Scope.QUEUE, QUEUE)
    fill(handler, payloads)
    connection.close()
    with worker_at(place, **options) as running:
        running.wait_until_up()
        before = running.cpu_apart()
        backend.operator.resume(Scope.QUEUE, QUEUE)
        backend.wake()
        wait_until_done(pause=0.1)
        spent = [1e6 * (late - early) / len(payloads) for early, late in zip(before, running.cpu_apart(), strict=True)]
    return Drained(_rate(len(payloads)), *spent)


def fill(handler: Handler[..., Any, ...], payloads: Sequence[object]) -> None:
    """Enqueue many jobs with the public API."""
    for start in range(0, len(payloads), _CHUNK):
        handler.enqueue_many(payloads[start : start + _CHUNK])


def wait_until_done(pause: float) -> None:
    """Wait until all jobs are completed."""
    left = rows("Job").exclude(status="completed")
    until(lambda: not left.exists(), "all jobs are completed", pause=pause, patience=PATIENCE)


def _rate(count: int) -> float:
    """Return the speed from the first claim to the last completion, as recorded in the rows."""
    span = rows("Job").aggregate(first=Min("started_at"), last=Max("completed_at"), all=Count("pk"))
    if span["all"] != count:
        raise RuntimeError(f"{span['all']} jobs were drained, not {count}")
    return float(count / (span["last"] - span["first"]).total_seconds())


def _turn(site: Site, setting: Setting, count: int) -> Turn:
    """Drain with the worker and then with bare SQL, so that a slow spell of the machine affects both."""
    site.fresh()
    place = durable(site.place) if setting.durable else site.place
    handler = resize_soon if setting.coroutines else resize_image
    payloads = [Resize(image_id=number) for number in range(count)]
    run = drained(place, handler, payloads, concurrency=setting.slots, processes=setting.processes)
    return run, _drain_bare(site, setting, count)


def _drain_bare(site: Site, setting: Setting, count: int) -> float:
    """Drain with the combined statement of a handwritten worker, in batches of the worker's slots."""
    site.fresh()
    site.raw.fill(Crowd(count=count))
    with closing(RawDurable(site.place.address)) if setting.durable else nullcontext(site.raw) as raw:
        slots = setting.slots * setting.processes
        return count / timing.seconds(lambda: drain_raw(raw, count, slots))


def _figure(site: Site, setting: object, count: int, turns: Sequence[Turn], goal: Goal | None = None) -> Figure:
    measure = f"worker drains {count:,}, {setting}"
    mine, bare = [run.rate for run, _ in turns], [rate for _, rate in turns]
    return timing.compared_rates(site.place.vendor, measure, mine, bare, goal)


def _cpu(site: Site, setting: Setting, turns: Sequence[Turn]) -> Figure:
    supervisor = median(run.supervisor for run, _ in turns)
    executors = median(run.executors for run, _ in turns)
    return Figure(
        database=site.place.vendor,
        measure=f"CPU time per job, {setting}",
        ours=Value(
            f"supervisor {supervisor:.1f}, executors {executors:.1f} µs",
            {"supervisor_us": supervisor, "executors_us": executors},
        ),
    )
