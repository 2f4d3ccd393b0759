"""Promises of single faults, in addition to those that the checker verifies for all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

from benchmarks.faults.laboratory import Laboratory
from benchmarks.faults.ledger import What
from jobqueue.clock import SYSTEM


def expect_one_run(lab: Laboratory) -> None:
    """Expect that each job was begun once: no lease was lost, and no finished job was forgotten."""

    def look(_: object) -> None:
        begun = Counter(one.job for one in lab.told(What.START))
        again = [job for job, times in begun.items() if times > 1]
        lab.expect(not again, f"no job is begun twice, {len(again)} were: {again[:3]}")

    lab.afterwards(look)


def expect_in_reach(lab: Laboratory) -> None:
    """Expect that no worker has lost the database."""
    lost = [one.name for one in lab.folder.glob("worker-*.log") if "out of reach" in one.read_text(errors="replace")]
    lab.expect(not lost, f"no worker loses the database, these did: {lost}")


def expect_no_deadlock(lab: Laboratory) -> None:
    """Expect no deadlock in this database's statistics."""

    def look(_: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
            (deadlocks,) = cursor.fetchone()
        lab.expect(not deadlocks, f"nothing deadlocks, there were {deadlocks}")

    lab.afterwards(look)


@contextmanager
def flow(lab: Laboratory) -> Iterator[None]:
    """Measure how many jobs begin per second during a fault, and the longest gap. Keep the worst values."""
    began = SYSTEM.monotonic()
    yield
    ended = SYSTEM.monotonic()
    starts = [one.at for one in lab.told(What.START) if began < one.at < ended]
    gap = max(after - before for before, after in zip([began, *starts], [*starts, ended], strict=True))
    rate = round(len(starts) / (ended - began), 1)
    lab.findings["begun_per_second_meanwhile"] = min(rate, lab.findings.get("begun_per_second_meanwhile", rate))
    lab.findings["longest_gap_seconds"] = max(round(gap, 2), lab.findings.get("longest_gap_seconds", 0.0))
