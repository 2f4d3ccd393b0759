"""Many processes that compete for the only write lock of a SQLite file."""

from __future__ import annotations

import time
from functools import partial

from django.apps import apps

from benchmarks import timing
from benchmarks.faults.catalogue import SQLITE, fault
from benchmarks.faults.enqueueing import enqueue, with_rows
from benchmarks.faults.forking import beside
from benchmarks.faults.laboratory import Laboratory
from benchmarks.faults.ledger import What


@fault("T20", "many writers and readers of one SQLite file", databases=SQLITE)
def crowd_at_the_lock(lab: Laboratory) -> None:
    """Enqueue in many processes beside workers, pages and other transactions: none fails with "locked"."""
    lab.crew.start(2 if lab.quick else 4, processes=1, lease=lab.lease)
    lab.load.start(3 if lab.quick else 8, rate=30, mix={"short": 1})
    with beside(_read_page, _read_page, partial(_book, lab)):
        while lab.goes_on():
            lab.pause(1)
            lab.injected("a second of crowd", note=False)
    refused = [one.facts["error"] for one in lab.told(What.REFUSED, What.UNKNOWN)]
    lab.expect(not refused, f"nobody is refused, {len(refused)} were: {sorted(set(refused))[:3]}")
    took = [one.facts["took"] for one in lab.told(What.ACCEPTED)]
    lab.findings["enqueue"] = timing.tail(took).text


def _book(lab: Laboratory) -> None:
    enqueue(lab.ledger, "short", lab.rng, with_rows)
    time.sleep(0.02)


def _read_page() -> None:
    """Read what an admin page reads: the counts, and the latest jobs."""
    jobs = apps.get_model("jobqueue", "Job")._default_manager
    for status in ("queued", "in_progress", "completed"):
        jobs.filter(status=status).count()
    list(jobs.order_by("-id")[:100].values())
    time.sleep(0.02)
