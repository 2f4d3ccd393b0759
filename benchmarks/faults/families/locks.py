"""Foreign locks on queued jobs, on running jobs, on a worker's row, and on a whole SQLite file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from benchmarks.faults.catalogue import POSTGRES, SQLITE, fault
from benchmarks.faults.laboratory import Laboratory
from benchmarks.faults.ledger import What
from benchmarks.faults.promises import expect_in_reach, expect_no_deadlock, expect_one_run, flow
from benchmarks.faults.sessions import exclusive, transaction
from benchmarks.workers import until
from jobqueue.records.worker import NEWS_EVERY

HELD = 10
#: So long that a worker that has waited for a lock has time to renew; shorter than the jobs that it renews for.
_LEASE = 10
_JOBS = "SELECT id FROM job_queue WHERE id = ANY(%s) FOR UPDATE"
_RUNNING = "SELECT id FROM job_queue WHERE status = 'in_progress' AND id <> ALL(%s) FOR UPDATE SKIP LOCKED"
_WORKERS = "SELECT owner FROM job_queue_worker FOR UPDATE"


@fault("T19a", "another session that locks jobs that are ready", databases=POSTGRES)
def locked_ready(lab: Laboratory) -> None:
    """Hold FOR UPDATE on ten queued jobs: all others run meanwhile, these run later, and nothing deadlocks."""
    held = lab.enqueue("short", HELD)
    with transaction(lab.place, _JOBS, held) as rows:
        lab.expect(len(rows) == HELD, f"{HELD} rows are locked, there are {len(rows)}")
        lab.crew.start(2, concurrency=4, lease=lab.lease)
        lab.load.start(2, rate=20)
        lab.injected("FOR UPDATE")
        with flow(lab):
            while lab.goes_on():
                lab.pause(0.1)
        early = [one.job for one in lab.told(What.START) if one.job in held]
        others = len({one.job for one in lab.told(What.END)})
        lab.expect(not early, f"what is locked is not begun, {early[:3]} were")
        lab.expect(others, "other jobs are run meanwhile, none was")
    lab.healed()
    expect_no_deadlock(lab)


@fault("T19b", "another session that locks jobs that run", databases=POSTGRES)
def locked_running(lab: Laboratory) -> None:
    """Hold FOR UPDATE on running jobs past their end: only these wait, and their worker goes on with others."""
    lab.crew.start(1, concurrency=6, lease=_LEASE)  # one, for whether it waits is what is measured
    lab.load.start(2, rate=20, mix={"short": 1})
    others: list[str] = []
    while lab.goes_on():
        new = lab.enqueue("lasting", 2)
        until(partial(lab.started, *new), "jobs run that nobody locks")
        with _running(lab, new):
            lab.injected("FOR UPDATE")
            with flow(lab):
                lab.pause(_LEASE)
        others += new
        lab.healed()
        lab.pause(0.5)
    begun = lab.findings["begun_per_second_meanwhile"]
    lab.expect(begun > 0, "other jobs are begun meanwhile, none was")
    expect_in_reach(lab)

    def look(_: object) -> None:
        begun = [one.job for one in lab.told(What.START)]
        again = [job for job in others if begun.count(job) != 1]
        lab.expect(not again, f"what nobody locked is run once, {len(again)} of {len(others)} were not: {again[:3]}")

    lab.afterwards(look)
    expect_no_deadlock(lab)


@contextmanager
def _running(lab: Laboratory, others: list[str]) -> Iterator[None]:
    """Lock running jobs, except for some."""
    while True:
        with transaction(lab.place, _RUNNING, others) as rows:
            if rows:
                yield
                return


@fault("T19c", "another session that locks the rows of workers", databases=POSTGRES)
def locked_workers(lab: Laboratory) -> None:
    """Hold FOR UPDATE on all workers' rows for longer than their reports are apart: no job is affected."""
    lab.crew.start(2, concurrency=4, lease=2 * lab.lease)
    lab.load.start(2, rate=20)
    while lab.goes_on():
        with transaction(lab.place, _WORKERS) as rows, flow(lab):
            lab.expect(len(rows) >= 2, f"the rows of two workers are locked, there are {len(rows)}")
            lab.injected("FOR UPDATE")
            _until_news_are_due(lab)
        lab.healed()
    expect_no_deadlock(lab)
    expect_one_run(lab)


def _until_news_are_due(lab: Laboratory) -> None:
    """Wait for the longest time between two reports of a worker, plus a lease."""
    lab.pause(NEWS_EVERY.total_seconds() + 2 * lab.lease)


@fault("T19d", "another program that locks the SQLite file", databases=SQLITE)
def locked_file(lab: Laboratory) -> None:
    """Hold BEGIN EXCLUSIVE, for 20 s in a long run: work pauses and resumes, nothing is lost or run twice at once."""
    lab.crew.start(2, concurrency=4, lease=lab.lease)
    lab.load.start(2, rate=20)
    while lab.goes_on():
        until(lambda: bool(lab.told(What.START)), "work goes on")
        with exclusive(lab.place.address):
            lab.injected("BEGIN EXCLUSIVE")
            lab.pause(1.2 * lab.lease if lab.quick else 20)
        lab.healed()
        until(lambda: lab.told(What.HEALED)[-1].at < lab.told(What.START)[-1].at, "work goes on")
