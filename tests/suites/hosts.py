"""This queue in the place of Django's own backends, for tests that were written for those."""

from __future__ import annotations

from datetime import timedelta
from itertools import count
from typing import Any

from asgiref.sync import async_to_sync

from jobqueue import backends
from jobqueue.contrib.django_tasks import JobQueueBackend
from jobqueue.handlers.registry import registry
from jobqueue.models import Job
from jobqueue.records import Assignment, ClaimRequest
from jobqueue.worker.executor.attempt import Outcome, Running, perform, perform_async

#: The backends of Django and of the package django-tasks by the name of their class.
REPLACED = {"DummyBackend": "tests.suites.hosts.StoringHost", "ImmediateBackend": "tests.suites.hosts.DrainingHost"}


def drain(limit: int | None = None, queues: frozenset[str] | None = None) -> None:
    """Run what is due in this thread, at most ``limit`` jobs, and store what became of it."""
    backend = backends.current()
    request = ClaimRequest(limit=limit or 10, types=registry.names, queues=queues, lease=timedelta(seconds=60))
    settlements: tuple[Any, ...] = ()
    rounds = count() if limit is None else range(1)
    for _ in rounds:
        cycle = backend.cycle("host", settlements, request)
        if not cycle.claims:
            break
        outcomes = [_outcome(Running(_assignment(claim), lambda *_: None)) for claim in cycle.claims]
        settlements = tuple(one.settlement for one in outcomes if one.settlement)
    backend.cycle("host", settlements)


def _assignment(claim: Any) -> Any:
    return Assignment(*claim[: len(Assignment._fields)])


def _outcome(running: Running) -> Outcome:
    if not registry.is_async(running.assignment.type):
        return perform(running)
    return async_to_sync(perform_async)(running)


class StoringHost(JobQueueBackend):
    """This queue with the two names that tests use to look into the dummy backend."""

    @property
    def results(self):
        return [self.get_result(job_id) for job_id in Job.objects.order_by("id").values_list("id", flat=True)]

    def clear(self):
        Job.objects.all().delete()


class DrainingHost(StoringHost):
    """This queue with a worker's turn after each enqueue."""

    def enqueue(self, task, args, kwargs):
        result = super().enqueue(task, args, kwargs)
        drain()
        result.refresh()
        return result
