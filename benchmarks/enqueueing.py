"""Enqueueing: one by one with validation and a key, each committed, and in bulk."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from benchmarks import timing
from benchmarks.jobs import Resize, resize_image
from benchmarks.raw import PAYLOAD, Row
from benchmarks.report import Figure, Goal
from benchmarks.site import REPETITIONS, Site
from jobqueue.clock import SYSTEM, to_text
from jobqueue.ids import new_id

BULK = 1_000
ONE_BY_ONE = {"sqlite": Goal(4_000, beside=29_100), "postgres": Goal(2_000, beside=5_520)}
IN_BULK = {"sqlite": Goal(40_000, beside=96_000), "postgres": Goal(30_000, beside=61_700)}

Run = Callable[[], float]


def singly(site: Site) -> Iterator[Figure]:
    """Enqueue through the public API: a pydantic model, an idempotency key, a commit each."""
    count = site.size(3_000, 500)
    site.fresh()

    def ours() -> float:
        run = new_id()

        def work() -> None:
            for number in range(count):
                resize_image.using(idempotency_key=f"resize-{run}-{number}").enqueue(Resize(image_id=number))

        return count / timing.seconds(work)

    def raw() -> float:
        rows = _rows(count, keyed=True)
        return count / timing.seconds(lambda: site.raw.enqueue(rows))

    yield from _measured(site, "enqueue one by one: validated, with a key, committed", ours, raw, ONE_BY_ONE)


def in_bulk(site: Site) -> Iterator[Figure]:
    """Enqueue many by ``enqueue_many``, a transaction for each thousand."""
    times = site.size(10, 2)
    site.fresh()

    def ours() -> float:
        def work() -> None:
            for _ in range(times):
                resize_image.enqueue_many(Resize(image_id=number) for number in range(BULK))

        return times * BULK / timing.seconds(work)

    def raw() -> float:
        bulks = [_rows(BULK, keyed=False) for _ in range(times)]

        def work() -> None:
            for rows in bulks:
                site.raw.enqueue_many(rows)

        return times * BULK / timing.seconds(work)

    yield from _measured(site, f"enqueue_many of {BULK:,}", ours, raw, IN_BULK)


def _measured(site: Site, measure: str, ours: Run, raw: Run, goals: dict[str, Goal]) -> Iterator[Figure]:
    ours(), raw()  # whoever is first pays for caches and connections
    mine, bare = timing.interleaved(REPETITIONS, ours, raw)
    yield timing.compared_rates(site.place.vendor, measure, mine, bare, goals[site.place.vendor])


def _rows(count: int, *, keyed: bool) -> list[Row]:
    """Make rows ahead, so that the bare SQL is charged for nothing but itself."""
    now = to_text(SYSTEM.now())
    ids = [new_id() for _ in range(count)]
    return [
        (one, "default", "resize_image", "queued", 5, now, PAYLOAD, f"raw-{one}" if keyed else None, 0, 3, now, now)
        for one in ids
    ]
