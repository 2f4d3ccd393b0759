"""The speed of enqueueing, one by one with validation, a key and a commit, and in bulk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from django.db import connection

from benchmarks import timing
from benchmarks.jobs import Resize, resize_image
from benchmarks.raw import INSERT, Row, rows_to_insert
from benchmarks.report import Figure, Goal
from benchmarks.site import REPETITIONS, Site

BULK = 1_000
#: Of what an INSERT of a project's own would do through Django's cursor.
ONE_BY_ONE = 0.5
IN_BULK = {"sqlite": Goal(40_000, beside=96_000), "postgres": Goal(35_000, beside=61_700)}


def singly(site: Site) -> Iterator[Figure]:
    """Enqueue one by one with the public API: pydantic validation, an idempotency key, a commit each."""
    count = site.size(3_000, 500)
    site.fresh()
    ways: list[Callable[[], float]] = [
        lambda: _rate(count, _enqueue),
        lambda: _rate(count, _insert_by_cursor),
        lambda: _rate(count, site.raw.enqueue),
    ]
    for way in ways:
        way()  # whoever is first pays for caches and connections
    ours, by_cursor, bare = zip(*([way() for way in ways] for _ in range(REPETITIONS)), strict=True)
    measure = "enqueue one: validated, keyed, committed"
    yield _compared(site, f"{measure}; beside Django's cursor", ours, by_cursor, ONE_BY_ONE)
    yield _compared(site, f"{measure}; beside the driver", ours, bare)


def _rate(count: int, enqueue: Callable[[Sequence[Row]], object]) -> float:
    rows = rows_to_insert(count, keyed=True)
    return count / timing.seconds(lambda: enqueue(rows))


def _enqueue(rows: Sequence[Row]) -> None:
    for number, row in enumerate(rows):
        resize_image.using(idempotency_key=row[7]).enqueue(Resize(image_id=number))


def _insert_by_cursor(rows: Sequence[Row]) -> None:
    for row in rows:
        with connection.cursor() as cursor:
            cursor.execute(INSERT, row)
            cursor.fetchone()


def _compared(
    site: Site, measure: str, ours: Sequence[float], raw: Sequence[float], least: float | None = None
) -> Figure:
    share = timing.share(ours, raw)
    return Figure(
        database=site.place.vendor,
        measure=measure,
        ours=timing.rate(ours),
        raw=timing.rate(raw),
        share=share,
        goal=f"≥ {least:.0%} of it" if least else "",
        reached=share >= least if least and share else None,
    )


def in_bulk(site: Site) -> Iterator[Figure]:
    """Enqueue 1,000 jobs with enqueue_many, beside executemany in one transaction."""
    times = site.size(10, 2)
    site.fresh()

    def ours() -> float:
        def work() -> None:
            for _ in range(times):
                resize_image.enqueue_many(Resize(image_id=number) for number in range(BULK))

        return times * BULK / timing.seconds(work)

    def raw() -> float:
        bulks = [rows_to_insert(BULK, keyed=False) for _ in range(times)]

        def work() -> None:
            for rows in bulks:
                site.raw.enqueue_many(rows)

        return times * BULK / timing.seconds(work)

    ours(), raw()  # whoever is first pays for caches and connections
    mine, bare = timing.interleaved(REPETITIONS, ours, raw)
    yield timing.compared_rates(site.place.vendor, f"enqueue_many of {BULK:,}", mine, bare, IN_BULK[site.place.vendor])
