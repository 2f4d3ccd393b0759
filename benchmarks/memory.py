"""The memory of a whole worker with supervisor, zygote and executors, in a project with the admin."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.draining import fill, wait_until_done
from benchmarks.jobs import Resize, collect, resize_image
from benchmarks.report import Figure, Value
from benchmarks.site import Site
from benchmarks.workers import Worker, until, worker

#: Megabytes to reach.
WHOLE = {"sqlite": 70.0, "postgres": 75.0}
FURTHER = 8.0
MOST = 3
#: The seconds between two turns of the duty ``upkeep``, which needs Django to be imported.
UPKEEP = 2.0


@dataclass(frozen=True, slots=True)
class Sizes:
    """The memory of one worker in MB: before its first job, after many, and after a garbage collection."""

    idle: float
    busy: float
    collected: float


def memory(site: Site) -> Iterator[Figure]:
    """Measure a worker (PSS) when idle, after 10,000 jobs and after a full collection, and each further executor."""
    count = site.size(10_000, 1_000)
    one = _sizes(site, 1, count)
    goal = WHOLE[site.place.vendor]
    whole = "memory (PSS) of a worker with one executor"
    yield _figure(site, f"{whole}, idle", one.idle, goal)
    yield _figure(site, f"{whole}, after {count:,} jobs", one.busy)
    yield _figure(site, f"{whole}, after a full collection", one.collected, goal)
    further = (_sizes(site, MOST, count).collected - one.collected) / (MOST - 1)
    yield _figure(site, f"memory (PSS) of each further executor, up to {MOST}", further, FURTHER)


def _figure(site: Site, measure: str, megabytes: float, goal: float | None = None) -> Figure:
    return Figure(
        database=site.place.vendor,
        measure=measure,
        ours=Value(f"{megabytes:.1f} MB", {"megabytes": megabytes}),
        goal=f"≤ {goal:g} MB" if goal else "",
        reached=megabytes <= goal if goal else None,
    )


def _sizes(site: Site, executors: int, count: int) -> Sizes:
    site.fresh()
    with worker(site, processes=executors) as running:
        running.wait_until_up()
        time.sleep(1)  # until the executors have settled down
        idle = running.memory()
        fill(resize_image, [Resize(image_id=number) for number in range(count)])
        wait_until_done(pause=0.1)
        busy = running.memory()
        _collect(running)
        time.sleep(UPKEEP + 1)  # until the worker has seen that nothing is left to do
        return Sizes(idle, busy, running.memory())


def _collect(running: Worker) -> None:
    """Run a full garbage collection in each executor, as happens sooner or later in long-lived processes."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = Path(folder) / "ledger"
        ledger.touch()

        def have_all() -> bool:
            fill(collect, [{"path": str(ledger)} for _ in running.executors()])
            wait_until_done(pause=0.02)
            return set(map(int, ledger.read_text(encoding="ascii").split())) >= set(running.executors())

        until(have_all, "each executor has collected its garbage")
