"""Fixtures of what monitors read: workers, dead letters, and a monitor that asks."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from django.test import Client

from jobqueue.models import Worker
from jobqueue.policy.settling import settled
from jobqueue.records import Dead, Ending, Failure, WorkerRecord
from jobqueue.testing.contract.harness import put, settle, take_one

TOKEN = "a token of a monitor"


@dataclass(frozen=True)
class Monitor:
    """Asks for a page with a token, as Prometheus and load balancers do."""

    client: Client

    def get(self, address, token=TOKEN, **headers):
        return self.client.get(address, headers={"Authorization": f"Bearer {token}"} | headers)


@pytest.fixture
def monitor(queue, alias, settings):
    settings.ROOT_URLCONF = "tests.observe.urls"
    settings.JOBQUEUE = {"DATABASE": alias, "MONITOR_TOKEN": TOKEN}
    yield Monitor(Client())
    Worker.objects.using(alias).all().delete()


@pytest.fixture
def worker(queue):
    """A function that enlists a worker."""

    def enlist(name="one", **values):
        given = {"owner": f"app1:1:{name}", "name": name, "host": "app1", "pid": 1, "version": "0.1.0"}
        given |= {"started_at": queue.now(), "seen_at": queue.now(), "processes": 1, "slots": 10}
        given |= {"types": ("send_welcome", "resize_image")}
        queue.workers.enlist(WorkerRecord(**given | values))

    return enlist


@pytest.fixture
def dead_letter(queue):
    """A function that makes a dead letter of a tenant."""

    def make(job_type="send_welcome"):
        put(queue, job_type, priority=1, tenant="a secret customer")
        claim = take_one(queue, types=frozenset({job_type}))
        failure = Failure.of(Ending.FAILED, error_class="OSError", message="disk on fire", traceback="")
        assert settle(queue, settled(claim, Dead("attempts used up"), failure)) == ()

    return make
