"""The measurements behind the page on sizing: slots, processes, workers, open snapshots, missing vacuum."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext
from pathlib import Path

from django.db import connection
from django.db.models import Count, Max, Min

from benchmarks import timing
from benchmarks.cycling import OWNER, REQUEST, SLOTS, drain_raw
from benchmarks.databases import Place
from benchmarks.raw import Crowd
from benchmarks.report import Figure, Value
from benchmarks.site import REPETITIONS, Site
from benchmarks.workers import rows, until, worker
from jobqueue.records import Scope

try:
    import psycopg
except ImportError:
    psycopg = None  # type: ignore[assignment]

#: Slots of an executor, and executors of the worker.
SHAPES = ((10, 1), (50, 1), (200, 1), (10, 2), (50, 2), (200, 2))
WORKERS = (1, 2, 4)
PATIENCE = 600.0
#: How many claims are timed beside dead rows.
CLAIMS = 20


def slots(site: Site) -> Iterator[Figure]:
    """Drain no-op jobs with one worker, by slots and processes."""
    count = site.size(20_000, 2_000)
    for concurrency, processes in SHAPES:
        rates = [_drained(site, count, concurrency=concurrency, processes=processes) for _ in range(REPETITIONS)]
        measure = f"{count:,} no-op jobs, {_number(processes, 'executor')} of {concurrency} slots"
        yield Figure(database=site.place.vendor, measure=measure, ours=timing.rate(rates))


def workers(site: Site) -> Iterator[Figure]:
    """Drain no-op jobs with several workers of 50 slots on one database."""
    count = site.size(40_000, 4_000)
    for number in WORKERS:
        rates = [_drained(site, count, number, concurrency=SLOTS) for _ in range(REPETITIONS)]
        measure = f"{count:,} no-op jobs, {_number(number, 'worker')} of {SLOTS} slots"
        yield Figure(database=site.place.vendor, measure=measure, ours=timing.rate(rates))


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' if count > 1 else ''}"


def _drained(site: Site, count: int, number: int = 1, **options: int) -> float:
    """Drain a queue with workers, and return the jobs per second."""
    _fill(site, count)
    _drain(site, number, **options)
    span = rows("Job").aggregate(first=Min("started_at"), last=Max("completed_at"), all=Count("completed_at"))
    if span["all"] != count:
        raise RuntimeError(f"{span['all']} jobs were drained, not {count}")
    return float(count / (span["last"] - span["first"]).total_seconds())


def _fill(site: Site, count: int) -> None:
    site.fresh()
    site.raw.fill(Crowd(count=count))
    site.raw.settle_down()


def _drain(site: Site, number: int, **options: int) -> None:
    """Let workers start on the queue once all are up, and wait until it is empty."""
    site.backend.operator.pause(Scope.QUEUE, "default")
    with ExitStack() as running:
        for _ in range(number):
            running.enter_context(worker(site, **options))
        until(lambda: rows("Worker").count() == number, "all workers are up")
        site.backend.operator.resume(Scope.QUEUE, "default")
        site.backend.wake()
        until(lambda: _none("queued") and _none("in_progress"), "all jobs are done", patience=PATIENCE)


def _none(status: str) -> bool:
    # With `priority > 0` the index serves: without, each look would read all that was ever done.
    return not rows("Job").filter(status=status, priority__gt=0).exists()


def snapshots(site: Site) -> Iterator[Figure]:
    """Drain 100,000 jobs, timed at the beginning and the end, without and with an open snapshot."""
    count = site.size(100_000, 10_000)
    for is_open in (False, True):
        _fill(site, count)
        with snapshot(site.place) if is_open else nullcontext():
            _drain(site, 1, concurrency=SLOTS)
            wal = Path(f"{site.place.address}-wal")
            written = wal.stat().st_size / 2**20 if wal.exists() else 0.0
        first, last = _pace(0, count // 10), _pace(count - count // 10, count // 10)
        text = f"{first:,.0f}/s first, {last:,.0f}/s last tenth{f', WAL {written:.0f} MB' if written else ''}"
        yield Figure(
            database=site.place.vendor,
            measure=f"{count:,} no-op jobs, {SLOTS} slots, {'beside an open' if is_open else 'no'} snapshot",
            ours=Value(text, {"first": first, "last": last, "wal": written}),
        )


@contextmanager
def snapshot(place: Place) -> Iterator[None]:
    """Read, and leave the transaction open."""
    look = "SELECT id FROM job_queue LIMIT 1"
    if place.vendor == "postgres":
        with psycopg.connect(place.address) as reader:
            reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            reader.execute(look)
            yield
    else:
        with closing(sqlite3.connect(place.address, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute(look).fetchall()
            yield


def _pace(skip: int, count: int) -> float:
    """Return the jobs per second between two numbers of completed jobs."""
    moments = rows("Job").order_by("completed_at").values_list("completed_at", flat=True)
    return float((count - 1) / (moments[skip + count - 1] - moments[skip]).total_seconds())


def dead_rows(site: Site) -> Iterator[Figure]:
    """Claim 50 jobs after drains without a vacuum, and after a vacuum. Postgres only."""
    if site.place.vendor != "postgres":
        return
    for count in (0, site.size(100_000, 5_000), site.size(500_000, 20_000)):
        _fill(site, count)
        site.raw.leave_unanalysed()
        drain_raw(site.raw, count)
        site.raw.fill(Crowd(count=2 * CLAIMS * SLOTS))
        yield _claimed(site, f"claim {SLOTS}, {count:,} drained, never vacuumed")
        with connection.cursor() as cursor:
            cursor.execute("VACUUM job_queue")
        yield _claimed(site, f"claim {SLOTS}, {count:,} drained, vacuumed")


def _claimed(site: Site, measure: str) -> Figure:
    durations = [timing.seconds(lambda: site.backend.cycle(OWNER, (), REQUEST)) for _ in range(CLAIMS)]
    return Figure(database=site.place.vendor, measure=measure, ours=timing.milliseconds(durations))
