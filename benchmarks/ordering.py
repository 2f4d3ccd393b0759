"""The price of order: a worker drains a lane of parallel jobs, and a lane of barriers, beside a queue without order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.test.utils import override_settings

from benchmarks import timing
from benchmarks.draining import drained
from benchmarks.jobs import Resize, resize_image
from benchmarks.report import Figure
from benchmarks.site import REPETITIONS, Site

SLOTS = 50
#: Of the jobs per second of a queue without order.
LEAST_SHARE = 0.8


def lanes(site: Site) -> Iterator[Figure]:
    """Drain 20,000 parallel jobs of one lane, and of 100 lanes, and 2,000 barriers, beside a queue without order."""
    count = site.size(20_000, 2_000)
    yield _figure(site, count, {"ordered": True}, "of one lane", parallel=True, least=LEAST_SHARE)
    yield _figure(site, count, {"ordered": "width"}, "of 100 lanes", parallel=True, least=LEAST_SHARE)
    yield _figure(site, count // 10, {"ordered": True}, "of one lane, one by one", parallel=False)


def _figure(
    site: Site, count: int, options: dict[str, Any], name: str, *, parallel: bool, least: float | None = None
) -> Figure:
    repetitions = site.size(REPETITIONS, 1)
    mine, bare = timing.interleaved(
        repetitions, lambda: _drain(site, count, options, parallel), lambda: _drain(site, count, {}, None)
    )
    share = timing.share(mine, bare)
    return Figure(
        database=site.place.vendor,
        measure=f"worker drains {count:,} {name}, {SLOTS} threads, beside a queue without order",
        ours=timing.rate(mine),
        raw=timing.rate(bare),
        share=share,
        goal="" if least is None else f"≥ {least:.0%} of the speed without order",
        reached=None if least is None or share is None else share >= least,
    )


def _drain(site: Site, count: int, options: dict[str, Any], parallel: bool | None) -> float:
    site.fresh()
    place = replace(site.place, jobqueue={**site.place.jobqueue, "QUEUES": {"default": options} if options else {}})
    payloads = [Resize(image_id=number, width=number % 100) for number in range(count)]
    with override_settings(JOBQUEUE={**settings.JOBQUEUE, "QUEUES": place.jobqueue["QUEUES"]}):
        handler = resize_image if parallel is None else resize_image.using(parallel=parallel)
        return drained(place, handler, payloads, concurrency=SLOTS).rate
