"""The whole worker: how fast it drains, how soon it begins, what it costs, and what it survives on time."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from django.db import connection
from django.db.models import Count, Max, Min

from benchmarks import timing
from benchmarks.cycling import drain_raw
from benchmarks.jobs import Resize, hog, resize_image, resize_soon, stamp, wait
from benchmarks.raw import Crowd
from benchmarks.report import Figure, Goal, Value
from benchmarks.site import REPETITIONS, Site
from benchmarks.workers import Worker, rows, until, worker
from jobqueue.api import Handler
from jobqueue.clock import SYSTEM

#: Jobs per second with so many slots, and what the bare SQL did by 50 on the machine they were set for.
DRAINS = {
    "sqlite": {10: Goal(10_000, beside=79_200), 50: Goal(25_000, beside=79_200)},
    "postgres": {10: Goal(4_000, beside=44_500), 50: Goal(12_000, beside=44_500)},
}
PICKUP = {"sqlite": 3.0, "postgres": 5.0}
IDLE_PERCENT = 1.0
LATE = 20.0
BACK = 50.0
MEMORY = 75.0

LEASE = 2.0
_CHUNK = 5_000


def drains(site: Site) -> Iterator[Figure]:
    """Drain no-op jobs by one executor with 10 and with 50 slots, and coroutines with 50; beside it the bare cycle."""
    count = site.size(20_000, 2_000)
    for handler, slots in ((resize_image, 10), (resize_image, 50), (resize_soon, 50)):
        is_async = handler is resize_soon
        mine, bare = timing.interleaved(
            REPETITIONS,
            lambda handler=handler, slots=slots: _drain(site, handler, count, slots),  # type: ignore[misc]
            lambda: _drain_raw(site, count),
        )
        kind = "coroutines" if is_async else "threads"
        goal = DRAINS[site.place.vendor][slots]
        yield timing.compared_rates(site.place.vendor, f"worker drains {count:,}, {slots} {kind}", mine, bare, goal)


def _drain(site: Site, handler: Handler[..., None, ...], count: int, slots: int) -> float:
    site.fresh()
    for start in range(0, count, _CHUNK):
        handler.enqueue_many([Resize(image_id=number) for number in range(start, min(count, start + _CHUNK))])
    connection.close()
    with worker(site, concurrency=slots, drain=True) as running:
        running.wait()
    span = (
        rows("Job")
        .filter(status="completed")
        .aggregate(first=Min("started_at"), last=Max("completed_at"), all=Count("pk"))
    )
    if span["all"] != count:
        raise RuntimeError(f"{span['all']} jobs were drained, not {count}")
    return float(count / (span["last"] - span["first"]).total_seconds())


def _drain_raw(site: Site, count: int) -> float:
    site.fresh()
    site.raw.fill(Crowd(count=count))
    return count / timing.seconds(lambda: drain_raw(site, count))


def pickups(site: Site) -> Iterator[Figure]:
    """From a commit to the handler's first line in an idle worker, one at a time; and what idling costs."""
    site.fresh()
    with tempfile.TemporaryDirectory() as folder, worker(site) as running:
        _ready(running)
        began = running.cpu(), SYSTEM.monotonic()
        time.sleep(site.size(10, 3))
        idle = 100 * (running.cpu() - began[0]) / (SYSTEM.monotonic() - began[1])
        latencies = _stamped(Path(folder) / "pipe", site.size(300, 50))
    tail = timing.tail(latencies)
    goal = PICKUP[site.place.vendor]
    yield Figure(
        database=site.place.vendor,
        measure=f"from commit to handler, idle worker, {len(latencies)} times",
        ours=tail,
        goal=f"p99 ≤ {goal:g} ms",
        reached=tail.numbers["p99"] <= goal,
    )
    yield Figure(
        database=site.place.vendor,
        measure="CPU of an idle worker, all processes",
        ours=Value(f"{idle:.2f} % of a core", {"percent": idle}),
        goal=f"< {IDLE_PERCENT:g} %",
        reached=idle < IDLE_PERCENT,
    )


def _ready(running: Worker) -> None:
    until(lambda: rows("Worker").exists() and len(running.family()) == 3, "the worker is up")


def _stamped(pipe: Path, count: int) -> list[float]:
    os.mkfifo(pipe)
    latencies = []
    for turn in range(count + 5):
        stamp.enqueue(path=str(pipe))
        committed = SYSTEM.monotonic()
        with pipe.open(encoding="ascii") as reader:
            latencies.append(float(reader.readline()) - committed)
        time.sleep(0.02 + turn % 7 * 0.0007)  # past the looks that follow a wake-up, and not in time with anything
    return latencies[5:]


def renewals(site: Site) -> Iterator[Figure]:
    """How late leases are renewed beside a handler that holds the interpreter's lock for seconds in one C call."""
    site.fresh()
    count, length = site.size(4, 1), 6.0
    with worker(site, lease=LEASE, concurrency=4) as running:
        _ready(running)
        for _ in range(count):
            hog.enqueue(seconds=length)
        late = _lateness(count)
    tail = timing.tail(late)
    yield Figure(
        database=site.place.vendor,
        measure=f"renewal is late by, beside {count} jobs that hold the GIL for {length:g} s",
        ours=tail,
        goal=f"p99 ≤ {LATE:g} ms",
        reached=tail.numbers["p99"] <= LATE,
    )


def _lateness(count: int) -> list[float]:
    """Read every renewal off the rows: what lies between two of one claim, beyond a third of the lease."""
    seen: dict[str, list[float]] = {}
    done = threading.Event()
    while not done.is_set():
        for job_id, until_ in rows("Job").filter(status="in_progress").values_list("id", "lease_until"):
            moments = seen.setdefault(job_id, [])
            if not moments or moments[-1] != until_.timestamp():
                moments.append(until_.timestamp())
        if rows("Job").filter(status="completed").count() == count:
            done.set()
        time.sleep(0.02)
    if rows("Attempt").exists():
        raise RuntimeError("a job was run twice")
    gaps = [later - earlier for moments in seen.values() for earlier, later in pairwise(moments)]
    return [max(0.0, gap - LEASE / 3) for gap in gaps]


def crashes(site: Site) -> Iterator[Figure]:
    """From ``kill -9`` of an executor to the moment all its jobs are settled in the table."""
    slots, times = 10, site.size(15, 3)
    durations = [_crash(site, slots) for _ in range(times)]
    tail = timing.tail(durations)
    yield Figure(
        database=site.place.vendor,
        measure=f"kill -9 of an executor to its {slots} jobs given back, {times} times",
        ours=tail,
        goal=f"p50 ≤ {BACK:g} ms",
        reached=tail.numbers["p50"] <= BACK,
    )


def _crash(site: Site, slots: int) -> float:
    site.fresh()
    with tempfile.TemporaryDirectory() as folder, worker(site, concurrency=slots) as running:
        _ready(running)
        ledger = Path(folder) / "ledger"
        ledger.touch()
        wait.enqueue_many([{"path": str(ledger)} for _ in range(slots)])
        until(lambda: len(ledger.read_text(encoding="ascii").splitlines()) == slots, "all jobs run")
        executor = int(ledger.read_text(encoding="ascii").split()[0])
        rows("Attempt").count()  # connects
        killed = SYSTEM.monotonic()
        os.kill(executor, signal.SIGKILL)
        until(lambda: rows("Attempt").count() == slots, "they are given back", pause=0.0005)
        return SYSTEM.monotonic() - killed


def memory(site: Site) -> Iterator[Figure]:
    """What supervisor, zygote and one executor take after 10,000 jobs, in a project with the admin and its like."""
    site.fresh()
    count = site.size(10_000, 1_000)
    with worker(site) as running:
        _ready(running)
        for start in range(0, count, _CHUNK):
            resize_image.enqueue_many([Resize(image_id=number) for number in range(start, min(count, start + _CHUNK))])
        until(lambda: rows("Job").filter(status="completed").count() == count, "all jobs are done", pause=0.1)
        size = running.memory()
    yield Figure(
        database=site.place.vendor,
        measure="memory (PSS) of supervisor, zygote and one executor",
        ours=Value(f"{size:.0f} MB", {"megabytes": size}),
        goal=f"≤ {MEMORY:g} MB",
        reached=size <= MEMORY,
    )
