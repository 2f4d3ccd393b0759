"""Fixtures of the workers' tests: real workers, and the channels between their parts."""

from __future__ import annotations

import socket
from itertools import count

import pytest

from jobqueue.models import Job, Worker
from jobqueue.worker.options import WorkerOptions
from jobqueue.worker.start import supervisor_of
from tests.app.ledger import Ledger
from tests.worker.harness import WorkerProcess, until


@pytest.fixture
def ledger(tmp_path):
    """What handlers note down; its gates let them go on."""
    folder = tmp_path / "ledger"
    folder.mkdir()
    return Ledger(folder)


@pytest.fixture
def channel():
    """Both ends of a channel."""
    ours, theirs = socket.socketpair()
    theirs.settimeout(10)
    yield ours, theirs
    ours.close()
    theirs.close()


@pytest.fixture
def start_worker(queue, alias, ledger, tmp_path):
    """A function that starts a worker on the test's database; what it leaves is killed after the test."""
    started = []
    numbers = count(1)

    def start(*options, up=1, **given):
        log = tmp_path / f"worker-{next(numbers)}.log"
        worker = WorkerProcess(given.pop("alias", alias), ledger.folder, log, *options, **given)
        started.append(worker)
        return worker.until_up(up) if up else worker

    yield start
    for worker in started:
        worker.destroy()
        print(f"--- {worker.log.name}\n{worker.output}")  # noqa: T201 - shown where a test fails
    Worker.objects.using(alias).all().delete()


@pytest.fixture
def look(queue, request):
    """A function with which a worker that does nothing else looks for dead ones, now or some seconds later."""
    if "place" in request.fixturenames:
        request.getfixturevalue("place")  # a runtime folder of the test's own
    supervisor = supervisor_of(WorkerOptions(processes=0), None)

    def act(seconds_later=0.0):
        supervisor.deaths._look_at = 0.0
        for dead in supervisor.deaths._dead.values():
            dead.quiet_at -= seconds_later
        supervisor.deaths.act()

    yield act
    supervisor.deaths.close()
    supervisor.signals.close()


@pytest.fixture
def jobs(queue, alias):
    """Look at jobs, and wait for what becomes of them."""
    return Jobs(alias)


class Jobs:
    """The rows of a test."""

    def __init__(self, alias):
        self.alias = alias

    def get(self, receipt):
        """Read one row."""
        return Job.objects.using(self.alias).get(pk=getattr(receipt, "id", receipt))

    def statuses(self, *receipts):
        """Read the statuses of jobs, in the order given."""
        ids = [getattr(one, "id", one) for one in receipts]
        found = dict(Job.objects.using(self.alias).filter(pk__in=ids).values_list("id", "status"))
        return [found.get(one) for one in ids]

    def until(self, status, *receipts, seconds=30.0):
        """Wait until jobs have a status; return their rows."""
        wanted = [status] * len(receipts)

        def met():
            return self.statuses(*receipts) == wanted

        until(met, seconds, lambda: f"{status}, there is {self.statuses(*receipts)}")
        return [self.get(one) for one in receipts]

    def history(self, receipt):
        """Read how the attempts of a job ended that did not succeed, oldest first."""
        return list(self.get(receipt).history.order_by("fence"))

    def endings(self, receipt):
        """Read the endings alone."""
        return [one.ending for one in self.history(receipt)]
