"""Histories in which a worker dies at each place: a whole worker by SIGKILL, or an attempt after each commit."""

from __future__ import annotations

from contextlib import suppress
from itertools import count
from pathlib import Path

from django.conf import settings
from django.db import transaction
from due_work_harness import CallableDelivery, HandoffHistory
from due_work_harness.process_histories import ProcessHistory, fault_environment

import jobqueue
from jobqueue import backends
from jobqueue.models import Job
from jobqueue.policy.leases import settle_dead
from jobqueue.testing import drain
from jobqueue.testing.due_jobs import OWNER
from tests.due_work.jobs import PLACES, effects, note
from tests.worker.harness import WorkerProcess, until

_numbers = count(1)


def unfinished():
    return Job.objects.exclude(status__in=["completed", "failed", "dead_letter"])


def start_worker(point=None, *options):
    number = next(_numbers)
    folder = Path(settings.PRIVATE)
    environment = fault_environment(point, folder / f"marker-{number}")
    return WorkerProcess(
        "default", folder, folder / f"worker-{number}.log", *options, apps=("tests.due_work",), environment=environment
    )


def run_until_death_or_end(point):
    """Enqueue a job, and run a worker until it is killed or nothing is left to do."""
    name = f"note {next(_numbers)}"
    note.enqueue(name=name)
    worker = start_worker(point)
    until(
        lambda: worker.process.poll() is not None or not unfinished().exists(), what="the death or the end of a worker"
    )
    if point == "completion stored":
        with suppress(AssertionError):
            until(lambda: worker.process.poll() is not None, seconds=5)
    status = worker.process.poll()
    if status is None:
        status = worker.stop()
    worker.destroy()
    return name, status


def start_again(_name):
    """Start another worker, as a service manager does. It proves the death of the first one, and ends its claims."""
    worker = start_worker().until_up()
    until(lambda: not unfinished().exists(), what="a queue with nothing left")
    assert worker.stop() == 0, worker.output
    worker.destroy()


def observe(name):
    """Count the effects, the jobs that are not completed, and those that are."""
    mine = Job.objects.filter(payload__name__startswith=name)
    return (*effects(name), mine.exclude(status="completed").count(), mine.filter(status="completed").count())


WORKER_DEATHS = ProcessHistory(
    name="a worker that is killed",
    initial=(0, 0, 0, 0),
    run=run_until_death_or_end,
    observe=observe,
    recover=start_again,
    death_points=PLACES,
)


def enqueue_and_work(name):
    """Enqueue in a transaction, as a view does, and run what is due."""
    with transaction.atomic():
        jobqueue.enqueue("due.note", {"name": name})
    drain()


def recover():
    """End the claims of the dead worker, and run what is due, as the next worker does."""
    backends.current().end_claims(OWNER, settle_dead)
    drain()


DELIVERY = CallableDelivery(name="jobqueue", recover=recover)
COMMITS = HandoffHistory(
    name="enqueue, attempt and follow up",
    arrange=lambda: f"note {next(_numbers)}",
    transition=enqueue_and_work,
    observe=observe,
)
