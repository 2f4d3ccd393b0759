"""The time from a wake-up after a commit until the waiting process looks, by one clock on one machine."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from statistics import median

from benchmarks import timing
from benchmarks.children import child
from benchmarks.listening import bare_sender
from benchmarks.raw import PAYLOAD
from benchmarks.report import Figure
from benchmarks.site import REPETITIONS, Site
from jobqueue.clock import SYSTEM
from jobqueue.ids import new_id
from jobqueue.records import Draft

GOAL = 3.0
PATIENCE = 5.0
WARM = 5

#: Past the two looks that a listener takes 5 and 10 milliseconds after each wake-up: only the wake-up itself counts.
_PACE = 0.013
_STAGGER = 0.0007


def wake_ups(site: Site) -> Iterator[Figure]:
    """Enqueue, commit and wake; measure the time until the listener in another process returns."""
    each = site.size(100, 20)
    site.fresh()
    with _listener(site, "ours") as heard, _listener(site, "raw") as bare_heard, bare_sender(site.place) as send:
        mine, bare = [], []
        for _ in range(REPETITIONS):
            mine.append(_run(site, each, site.backend.wake, heard))
            bare.append(_run(site, each, send, bare_heard))
    ours, raw = (timing.tail([one for run in runs for one in run]) for runs in (mine, bare))
    yield Figure(
        database=site.place.vendor,
        measure=f"wake-up of another process, {REPETITIONS * each} times",
        ours=ours,
        raw=raw,
        share=timing.share([median(run) for run in bare], [median(run) for run in mine]),
        goal=f"p99 ≤ {GOAL:g} ms, or as raw",
        reached=ours.numbers["p99"] <= max(GOAL, raw.numbers["p99"]),
    )


def _run(site: Site, count: int, wake: Callable[[], object], heard: Callable[[], float]) -> list[float]:
    durations = []
    for turn in range(WARM + count):
        site.backend.enqueue([Draft(id=new_id(), type="resize_image", payload=PAYLOAD)])
        sent = SYSTEM.monotonic()
        wake()
        while (arrived := heard()) < sent:
            pass  # a look it owed to an earlier wake-up
        durations.append(arrived - sent)
        # Staggered, so as not to beat in time with whatever else is periodic.
        time.sleep(max(0.0, sent + _PACE + turn % 7 * _STAGGER - SYSTEM.monotonic()))
    return durations[WARM:]


@contextmanager
def _listener(site: Site, way: str) -> Iterator[Callable[[], float]]:
    """Start a listening process, and yield a function that reads its next timestamp."""
    with child("benchmarks.listening", way, asked=asdict(site.place)) as listening:

        def heard() -> float:
            if not select.select([listening.answers], [], [], PATIENCE)[0]:
                raise RuntimeError(f"nothing was heard for {PATIENCE:g} seconds: a wake-up was lost")
            return float(listening.answers.readline())

        if listening.answers.readline() != b"ready\n":
            raise RuntimeError("the listening process did not start")
        yield heard
