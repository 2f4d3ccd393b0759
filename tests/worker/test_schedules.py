"""Tests of schedules in real workers: each slot once and on its moment, though a worker is killed."""

from __future__ import annotations

import os
import signal
from datetime import timedelta
from itertools import pairwise

from jobqueue.models import Job
from jobqueue.schedules import operation
from tests.app import worker_jobs
from tests.worker.harness import until

#: How soon workers notice the first schedule.
SOON = {"jobqueue.worker.supervisor.duties.schedules.LOOK_IF_NONE": 0.2}


def slots_of(queue):
    """The slots with jobs that have begun, and when each began."""
    rows = Job.objects.using(queue.alias).filter(slot_at__isnull=False, started_at__isnull=False)
    return list(rows.order_by("slot_at").values_list("slot_at", "started_at"))


def test_two_workers_run_each_slot_once_on_its_moment_though_one_is_killed(queue, start_worker):
    fields = operation.read_fields(worker_jobs.note_run.name, "every 1s", "UTC", {"number": 1}, {"missed": "all"})
    first, _second = (start_worker(constants=SOON).until_up() for _ in range(2))
    operation.add("each-second", fields)
    until(lambda: len(slots_of(queue)) >= 2)
    os.kill(first.pid, signal.SIGKILL)
    until(lambda: len(slots_of(queue)) >= 4)
    found = slots_of(queue)
    slots = [slot for slot, _began in found]
    assert {later - earlier for earlier, later in pairwise(slots)} == {timedelta(seconds=1)}
    assert min(began - slot for slot, began in found) >= timedelta(0)
    assert min(began - slot for slot, began in found) < timedelta(milliseconds=50)
