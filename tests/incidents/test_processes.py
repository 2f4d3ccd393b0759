"""Incidents of processes: workers that are killed, and a handler that fails."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

from jobqueue.cli import exits
from jobqueue.models import Job
from jobqueue.observe.health import Cause
from tests.app.worker_jobs import hold, poison
from tests.worker.harness import until

LEASE = ("--lease", "2")


def test_the_only_worker_is_killed(named, over, start_worker, jobs, ledger):
    worker = start_worker(*LEASE)
    receipts = [hold.enqueue(gate="end") for _ in range(3)]
    until(lambda: ledger.started(*(one.id for one in receipts)), what="three running jobs")
    for pid in worker.family:
        with suppress(ProcessLookupError):  # the others end with their supervisor
            os.kill(pid, signal.SIGKILL)
    words = "No worker is up: 3 jobs are held by workers that died."
    assert named(words, Cause.NO_WORKER) == exits.WARNING
    start_worker(*LEASE)
    ledger.open_gate("end")
    jobs.until("completed", *receipts)
    over(Cause.NO_WORKER, Cause.HELD_BY_DEAD, Cause.WORKER_SILENT)


def test_every_job_of_a_type_dies(queue, named, over, start_worker, counted):
    receipts = [poison.enqueue(which="unspeakable") for _ in range(15)]
    assert start_worker("--drain", up=0).wait() == 0
    words = "Jobs of type poison fail: 30 of 30 attempts"
    assert named(words, Cause.FAILING) == exits.ERROR
    assert named("15 dead letters wait.", Cause.FAILING) == exits.ERROR
    counted("poison", completed=1_000)  # the handler was mended
    queue.operator.purge([one.id for one in receipts])
    assert not Job.objects.using(queue.alias).exists()
    over(Cause.FAILING, Cause.DIED_LATELY)
