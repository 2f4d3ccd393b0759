"""Tests of the moments by which rates are judged."""

from __future__ import annotations

from datetime import timedelta
from random import Random

import pytest

from jobqueue.backends.memory import MemoryBackend
from jobqueue.models import Job
from jobqueue.testing import VirtualClock
from jobqueue.testing.contract.harness import draft, put_all
from jobqueue.testing.contract.limiting import claim, rate
from tests.conftest import make_sql_backend

PER = 0.1


class BusyMachine(VirtualClock):
    """A clock on a machine that stands still at times from one reading to the next."""

    def __init__(self):
        super().__init__()
        self.pauses = Random(2)

    def now(self):
        self.advance(self.pauses.choice([0.001, 0.001, 0.001, 0.04]))
        return super().now()


@pytest.mark.parametrize("kind", ["memory", pytest.param("default", marks=pytest.mark.sqlite)])
def test_a_claim_that_takes_long_starts_no_job_too_early(databases, kind):
    clock = BusyMachine()
    backend = MemoryBackend(clock=clock) if kind == "memory" else make_sql_backend(kind, clock)
    ids = put_all(backend, *(draft() for _ in range(40)))
    for _ in range(150):
        claim(backend, rate(2, per=PER), limit=2)
    if kind == "memory":
        starts = [one for job in ids if (one := backend.jobs.get(job).started_at)]
    else:
        starts = list(Job.objects.exclude(started_at=None).values_list("started_at", flat=True))
    assert len(starts) > 10
    assert max(sum(begin <= one < begin + timedelta(seconds=PER) for one in starts) for begin in starts) <= 2
