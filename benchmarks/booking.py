"""Atomic handlers: each writes a row in one transaction with the job's completion."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial

from django.db import connection

from benchmarks import timing
from benchmarks.cycling import OWNER
from benchmarks.databases import Place
from benchmarks.draining import drained
from benchmarks.jobs import Resize, book
from benchmarks.raw import RESULT, Crowd, Held
from benchmarks.report import Figure, Goal
from benchmarks.site import REPETITIONS, Site
from jobqueue.clock import SYSTEM, to_text

try:
    import psycopg
except ImportError:
    psycopg = None  # type: ignore[assignment]

#: What is to be reached, by slots: on SQLite there is one write lock for all, on Postgres a connection for each.
GOALS: dict[str, dict[int, Goal | None]] = {
    "sqlite": {10: Goal(8_000, beside=35_200), 50: None},
    "postgres": {10: None, 50: Goal(1_000, beside=2_900)},
}

_TABLE = "CREATE TABLE booking (job_id varchar(64) PRIMARY KEY, image_id integer NOT NULL)"
_BOOK = "INSERT INTO booking (job_id, image_id) VALUES (%s, %s)"
_COMPLETE = """
UPDATE job_queue SET status = 'completed', result = %s, completed_at = %s, updated_at = %s, lease_owner = NULL,
       lease_until = NULL
 WHERE id = %s AND lease_owner = %s AND fence = %s AND status = 'in_progress'
"""

Book = Callable[[Held], None]


def bookings(site: Site) -> Iterator[Figure]:
    """Drain atomic handlers that write a row each, beside the same transaction in bare SQL."""
    count = site.size(5_000, 500)
    for slots, goal in GOALS[site.place.vendor].items():
        mine, bare = timing.interleaved(
            REPETITIONS, partial(_drain, site, slots, count), partial(_drain_bare, site, slots, count)
        )
        measure = f"worker drains {count:,}, atomic with a row each, {slots} threads"
        yield timing.compared_rates(site.place.vendor, measure, mine, bare, goal)


def _drain(site: Site, slots: int, count: int) -> float:
    _prepare(site)
    run = drained(site.place, book, [Resize(image_id=number) for number in range(count)], concurrency=slots)
    _check(count)
    return run.rate


def _drain_bare(site: Site, slots: int, count: int) -> float:
    """Claim as many jobs at once as the worker has slots, and complete each in a transaction of its own."""
    _prepare(site)
    site.raw.fill(Crowd(count=count))
    connection.close()
    with bare_bookings(site.place) as perform:

        def work() -> None:
            while claimed := site.raw.cycle(OWNER, (), slots):
                for held in claimed:
                    perform(held)

        duration = timing.seconds(work)
    _check(count)
    return count / duration


def _prepare(site: Site) -> None:
    site.fresh()
    with connection.cursor() as cursor:
        cursor.execute(_TABLE)


def _check(expected: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM booking")
        (booked,) = cursor.fetchone()
    if booked != expected:
        raise RuntimeError(f"{booked} rows were written, not {expected}")


@contextmanager
def bare_bookings(place: Place) -> Iterator[Book]:
    """Yield the function that writes a row and completes the job in one transaction."""
    if place.vendor == "postgres":
        with psycopg.connect(place.address, autocommit=True) as bare:
            yield lambda held: _book_on_postgres(bare, held)
    else:
        with closing(sqlite3.connect(place.address, isolation_level=None, timeout=30)) as bare_file:
            bare_file.execute("PRAGMA synchronous = NORMAL")
            yield lambda held: _book_on_sqlite(bare_file, held)


def _book_on_postgres(bare: psycopg.Connection[tuple[object, ...]], held: Held) -> None:
    with bare.transaction():
        bare.execute(_BOOK, (held[0], 7))
        completed = bare.execute(_COMPLETE, _completion(held))
    _check_completed(completed.rowcount)


def _book_on_sqlite(bare: sqlite3.Connection, held: Held) -> None:
    bare.execute("BEGIN IMMEDIATE")
    bare.execute(_BOOK.replace("%s", "?"), (held[0], 7))
    completed = bare.execute(_COMPLETE.replace("%s", "?"), _completion(held))
    bare.execute("COMMIT")
    _check_completed(completed.rowcount)


def _completion(held: Held) -> tuple[str, str, str, str, str, int]:
    job_id, fence = held
    now = to_text(SYSTEM.now())
    return RESULT, now, now, job_id, OWNER, fence


def _check_completed(count: int) -> None:
    if count != 1:
        raise RuntimeError("a completion was refused")
