"""The recovery time of a worker from handlers that hold the interpreter's lock, and from killed executors."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from benchmarks import timing
from benchmarks.jobs import hog, wait
from benchmarks.report import Figure
from benchmarks.site import Site
from benchmarks.workers import rows, until, worker
from jobqueue.clock import SYSTEM

LATE = 20.0
BACK = 50.0

LEASE = 2.0


def renewals(site: Site) -> Iterator[Figure]:
    """Measure how late leases are renewed beside handlers that hold the interpreter's lock in C for seconds."""
    site.fresh()
    count, length = site.size(4, 1), 6.0
    with worker(site, lease=LEASE, concurrency=4) as running:
        running.wait_until_up()
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
    """Return how late each renewal was: the time between two of one claim, beyond a third of the lease."""
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
    """Kill an executor, and measure the time until all its jobs are given back."""
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
        running.wait_until_up()
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
