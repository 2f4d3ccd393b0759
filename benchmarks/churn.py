"""A day in fast motion: ``python -m benchmarks.churn --hours 24 --database sqlite`` prints the size of the table.

Jobs are enqueued, run and pruned by the same calls as in production, on a clock that moves with the jobs. The server's
own autovacuum goes by real time, so it is called here as often as it would run.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from datetime import timedelta

from django.db import connection
from django.utils.module_loading import import_string

from benchmarks.raw import PAYLOAD
from benchmarks.site import Site, site_on
from jobqueue.ids import UlidFactory
from jobqueue.policy.retention import Rule
from jobqueue.policy.settling import completed
from jobqueue.records import ClaimRequest, Draft
from jobqueue.retention.walk import Walk
from jobqueue.states import JobStatus

TYPE = "resize_image"
BATCH = 500
#: How often a worker walks over the table, and how often autovacuum runs on a table that changes so much.
WALK_EVERY = timedelta(minutes=1)
_REQUEST = ClaimRequest(limit=BATCH, types=frozenset({TYPE}), lease=timedelta(minutes=1))


class Churn:
    """A queue in fast motion."""

    def __init__(self, site: Site, rate: float, keep: timedelta) -> None:
        self.clock = import_string("jobqueue.testing.VirtualClock")()  # once Django is set up
        self._backend, self._rate = site.backend, rate
        self._backend.clock = self.clock
        self._rules = (Rule(JobStatus.COMPLETED, keep=keep),)
        self._new_id = UlidFactory(self.clock)

    def minute(self) -> None:
        """Let a minute pass: jobs come and are run, old ones are pruned, and the table is vacuumed."""
        end = self.clock.now() + WALK_EVERY
        while self.clock.now() < end:
            self._backend.enqueue([Draft(id=self._new_id(), type=TYPE, payload=PAYLOAD) for _ in range(BATCH)])
            claims = self._backend.cycle("churn", (), _REQUEST).claims
            self._backend.cycle("churn", [completed(claim, "null") for claim in claims])
            self.clock.advance(BATCH / self._rate)
        walk = Walk(self._backend, self._rules)
        while not walk.is_over:
            walk.step()
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("VACUUM job_queue")


def sizes() -> dict[str, int]:
    """Return the bytes of the table with its indexes, and of SQLite's file what is in use and what is free."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT pg_table_size('job_queue'), pg_indexes_size('job_queue')")
            return dict(zip(("table", "indexes"), cursor.fetchone(), strict=True))
        pages = []
        for pragma in ("page_size", "page_count", "freelist_count"):
            cursor.execute(f"PRAGMA {pragma}")
            pages.append(cursor.fetchone()[0])
    size, count, free = pages
    return {"file": size * count, "free in it": size * free}


def lines(churn: Churn, minutes: int, parts: int) -> Iterator[tuple[str, int]]:
    """Let the minutes pass, and yield a line about the size and the size itself, for each part of the time."""
    for minute in range(1, minutes + 1):
        churn.minute()
        if minute % max(1, minutes // parts) == 0:
            found = sizes()
            told = ", ".join(f"{name} {size / 2**20:,.1f} MB" for name, size in found.items())
            yield f"after {timedelta(minutes=minute)}: {told}", sum(found.values()) - found.get("free in it", 0)


def main() -> None:
    """Print the sizes, and how far the second half of the run differs from its beginning."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.churn", description=__doc__)
    parser.add_argument("--hours", type=float, default=1.0, help="how long the run is on its clock (default: 1)")
    parser.add_argument("--rate", type=float, default=200.0, help="jobs a second on its clock (default: 200)")
    parser.add_argument("--keep", type=float, default=300.0, help="seconds for which jobs are kept (default: 300)")
    parser.add_argument("--database", choices=["sqlite", "postgres"], default="sqlite")
    given = parser.parse_args()
    with site_on(given.database) as site:
        site.fresh()
        churn, found = Churn(site, given.rate, timedelta(seconds=given.keep)), []
        for line, size in lines(churn, int(60 * given.hours), 12):
            print(line, flush=True)
            found.append(size)
        steady = found[len(found) // 2 :]
        print(f"the second half differs by {max(steady) / min(steady) - 1:.1%}")


if __name__ == "__main__":
    main()
