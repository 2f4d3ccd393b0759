"""The time from a commit to the handler's first line: in an idle worker, a busy one, and beside a busy handler."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

from benchmarks import timing
from benchmarks.children import child
from benchmarks.jobs import compute, stamp
from benchmarks.producing import committed
from benchmarks.report import Figure, Value
from benchmarks.site import Site
from benchmarks.workers import Worker, rows, until, worker
from jobqueue.clock import SYSTEM

#: Milliseconds to reach.
IDLE_P50 = {"sqlite": 0.4, "postgres": 1.0}
IDLE_P99 = {"sqlite": 1.5, "postgres": 2.0}
FLOWING_P99 = 10.0
COMPUTING_P99 = {"sqlite": 5.0, "postgres": 10.0}
IDLE_PERCENT = 1.0

RATE = 1_000
#: How much of the pace the producer has to keep for its figure to count.
_KEPT = 0.95
WARM = 5


def idle(site: Site) -> Iterator[Figure]:
    """Pick up jobs one at a time in an idle worker, from commit to handler, with the CPU cost of idling."""
    with _pipe(site) as (running, pipe):
        before, start = running.cpu(), SYSTEM.monotonic()
        time.sleep(site.size(15, 3))
        percent = 100 * (running.cpu() - before) / (SYSTEM.monotonic() - start)
        tail = timing.tail(_stamped(pipe, site.size(300, 50)))
    p50, p99 = IDLE_P50[site.place.vendor], IDLE_P99[site.place.vendor]
    yield Figure(
        database=site.place.vendor,
        measure="from commit to handler, idle worker",
        ours=tail,
        goal=f"p50 ≤ {p50:g}, p99 ≤ {p99:g} ms",
        reached=tail.numbers["p50"] <= p50 and tail.numbers["p99"] <= p99,
    )
    yield Figure(
        database=site.place.vendor,
        measure="CPU of an idle worker, all processes",
        ours=Value(f"{percent:.2f} % of a core", {"percent": percent}),
        goal=f"≤ {IDLE_PERCENT:g} %",
        reached=percent <= IDLE_PERCENT,
    )


def computing(site: Site) -> Iterator[Figure]:
    """Pick up jobs one at a time beside a handler that computes in Python without releasing the lock."""
    with _pipe(site) as (_, pipe):
        compute.enqueue()
        until(lambda: rows("Job").filter(status="in_progress").exists(), "the other job runs")
        tail = timing.tail(_stamped(pipe, site.size(300, 50)))
    goal = COMPUTING_P99[site.place.vendor]
    yield Figure(
        database=site.place.vendor,
        measure="from commit to handler, beside one that computes",
        ours=tail,
        goal=f"p99 ≤ {goal:g} ms",
        reached=tail.numbers["p99"] <= goal,
    )


@contextmanager
def _pipe(site: Site) -> Iterator[tuple[Worker, Path]]:
    """Start a worker without options, and make a pipe for timestamps. No option makes pickups faster."""
    site.fresh()
    with tempfile.TemporaryDirectory() as folder, worker(site) as running:
        pipe = Path(folder) / "pipe"
        os.mkfifo(pipe)
        running.wait_until_up()
        yield running, pipe


def _stamped(pipe: Path, count: int) -> list[float]:
    latencies = []
    for turn in range(WARM + count):
        _, moment = committed(stamp, path=str(pipe))
        with pipe.open(encoding="ascii") as reader:
            latencies.append(float(reader.readline()) - moment)
        time.sleep(0.02 + turn % 7 * 0.0007)  # past the looks that follow a wake-up, and not in time with anything
    return latencies[WARM:]


def flowing(site: Site) -> Iterator[Figure]:
    """Pick up jobs while another process enqueues 1,000 a second for ten seconds, from commit to handler."""
    site.fresh()
    with tempfile.TemporaryDirectory() as folder, worker(site) as running:
        running.wait_until_up()
        ledger = Path(folder) / "ledger"
        moments = _produced(site, ledger, site.size(10, 3))
        until(lambda: len(_read(ledger)) == len(moments), "all jobs have begun", pause=0.1)
        began = _read(ledger)
    first, last = min(moments.values()), max(moments.values())
    pace = (len(moments) - 1) / (last - first)
    # The first second warms both sides up: connections, threads, plans.
    tail = timing.tail([began[job_id] - moment for job_id, moment in moments.items() if moment > first + 1])
    yield Figure(
        database=site.place.vendor,
        measure=f"from commit to handler, while {RATE:,} jobs a second flow",
        ours=replace(tail, numbers=tail.numbers | {"pace": pace}),
        goal=f"p99 ≤ {FLOWING_P99:g} ms at {pace:,.0f}/s",
        reached=tail.numbers["p99"] <= FLOWING_P99 and pace >= _KEPT * RATE,
    )


def _produced(site: Site, ledger: Path, seconds: int) -> dict[str, float]:
    """Enqueue at a pace in another process. Return when each job was committed."""
    asked = {"place": asdict(site.place), "seconds": seconds, "rate": RATE, "path": str(ledger)}
    with child("benchmarks.producing", asked=asked) as producing:
        moments = _parsed(producing.answers.read().decode())
        if status := producing.status():
            raise RuntimeError(f"the process that enqueues ended with {status}")
    return moments


def _read(ledger: Path) -> dict[str, float]:
    return _parsed(ledger.read_text(encoding="ascii")) if ledger.exists() else {}


def _parsed(text: str) -> dict[str, float]:
    lines = (line.split() for line in text.splitlines())
    return {job_id: float(moment) for job_id, moment in lines}
