"""The speed of ``runworker`` without options, with the database settings of ``startproject``."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from dataclasses import asdict

from benchmarks import timing
from benchmarks.children import child
from benchmarks.report import Figure
from benchmarks.site import REPETITIONS, Site
from benchmarks.variants import plain


def newcomers(site: Site) -> Iterator[Figure]:
    """Drain 20,000 no-op jobs as a newcomer does: no options, no settings, no statistics."""
    count = site.size(20_000, 2_000)
    rates = [_rate(site, count) for _ in range(REPETITIONS)]
    yield Figure(
        database=site.place.vendor,
        measure=f"worker drains {count:,}, without options and settings",
        ours=timing.rate(rates),
        goal="≥ 5 times any Django peer as installed",
    )


def _rate(site: Site, count: int) -> float:
    """Measure in a process of its own, because Django's settings are per process."""
    site.fresh()
    site.raw.leave_unanalysed()
    with tempfile.TemporaryDirectory() as folder:
        asked = {"place": asdict(plain(site.place, folder)), "count": count}
        with child("benchmarks.newcomer_process", asked=asked) as draining:
            if answer := draining.answers.readline():
                return float(json.loads(answer))
    raise RuntimeError("the newcomer's process ended without an answer")
