"""The concurrency of slots: sleeping jobs, as a share of what that many slots could do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from statistics import median
from typing import Any

from benchmarks import timing
from benchmarks.draining import drained
from benchmarks.jobs import nap, nap_soon
from benchmarks.report import Figure
from benchmarks.site import REPETITIONS, Site
from jobqueue.api.handler import Handler

SLOTS = 50
#: Which share of the ideal is to be reached, by the seconds that a job waits.
GOALS = {0.001: 0.45, 0.005: None, 0.010: 0.85}
MOST = 20_000


def naps(site: Site) -> Iterator[Figure]:
    """Drain jobs that sleep 1, 5 and 10 ms with 50 threads and with 50 coroutines, beside the ideal."""
    for handler, kind in ((nap, "threads"), (nap_soon, "coroutines")):
        for seconds, goal in GOALS.items():
            yield _figure(site, handler, kind, seconds, goal)


def _figure(site: Site, handler: Handler[..., Any, ...], kind: str, seconds: float, goal: float | None) -> Figure:
    ideal = SLOTS / seconds
    count = site.size(min(MOST, int(ideal)), 1_000)
    rates = [_rate(site, handler, seconds, count) for _ in range(REPETITIONS)]
    result, ratio = timing.rate(rates), median(rates) / ideal
    return Figure(
        database=site.place.vendor,
        measure=f"worker drains {count:,} that sleep {1000 * seconds:g} ms, {SLOTS} {kind}",
        ours=replace(result, numbers=result.numbers | {"ideal": ideal, "ratio": ratio}),
        goal=f"{ratio:.0%} of {ideal:,.0f}/s" + (f", ≥ {goal:.0%}" if goal else ""),
        reached=ratio >= goal if goal else None,
    )


def _rate(site: Site, handler: Handler[..., Any, ...], seconds: float, count: int) -> float:
    site.fresh()
    return drained(site.place, handler, [{"seconds": seconds}] * count, concurrency=SLOTS).rate
