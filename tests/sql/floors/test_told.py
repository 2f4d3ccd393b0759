"""Tests of wake-ups that say how old the committed jobs are: what came late behind a floor is claimed soon."""

from __future__ import annotations

from contextlib import closing, contextmanager
from datetime import timedelta
from threading import Event, Thread

import psycopg
import pytest
from django.db import connections, transaction

from jobqueue import control
from jobqueue.api.admission import admit
from jobqueue.clock import SYSTEM
from jobqueue.ids import new_id
from jobqueue.records import Amendment
from jobqueue.testing.contract.harness import draft, put, take
from tests.conftest import make_sql_backend
from tests.sql.floors.harness import sections, snapshot
from tests.sql.floors.test_late import INSERT
from tests.sql.floors.test_snapshot import churn, is_up
from tests.waking.test_silence import address
from tests.worker.harness import until

pytestmark = pytest.mark.postgres

AGED = 300_000
LATE = 5
#: A poll interval. Looks that no wake-up told of take some seconds to come by.
SOON = 1.0


@pytest.fixture
def backend(databases, settings):
    settings.JOBQUEUE = {"DATABASE": "postgres"}
    made = make_sql_backend("postgres", None)
    yield made
    connections["postgres"].close()


class LateTransaction(Thread):
    """A transaction that has enqueued a job, and commits when it is told to."""

    def __init__(self):
        super().__init__()
        self._is_enqueued, self._may_commit = Event(), Event()
        self.start()
        assert self._is_enqueued.wait(10)

    def run(self):
        with transaction.atomic(using="postgres"):
            self.job_id = admit([draft()])[0].id
            self._is_enqueued.set()
            assert self._may_commit.wait(120)
        connections["postgres"].close()

    def commit(self):
        self._may_commit.set()
        self.join()


@contextmanager
def floors_up(backend):
    """Listen once the floors are up, with several sections behind them."""
    until(lambda: is_up(backend) and len(sections(backend._looks.floors)) > 1)
    with closing(backend.listen()) as listener:
        yield listener


def seconds_until_claimed(backend, listener, job_id):
    """Return how long a worker that the listener wakes takes to claim a job."""
    began = SYSTEM.monotonic()
    assert listener.hear(5)
    until(lambda: job_id in {claim.id for claim in take(backend)})
    return SYSTEM.monotonic() - began


def test_jobs_of_long_transactions_and_jobs_that_an_operator_moves_are_claimed_soon(backend):
    with snapshot(), psycopg.connect(address(), autocommit=True) as other:
        moment, late = backend.now(), []
        for _ in range(LATE):
            late.append(LateTransaction())
            churn(AGED // LATE)
        with floors_up(backend) as listener:
            for one in late:
                one.commit()
                assert seconds_until_claimed(backend, listener, one.job_id) < SOON
            later = put(backend, delay=timedelta(hours=1))
            control.amend([later], Amendment(scheduled_at=moment + timedelta(seconds=1)))
            assert seconds_until_claimed(backend, listener, later) < SOON
            job_id = new_id()
            other.execute(INSERT, [job_id, "default", 6, *3 * [moment + timedelta(seconds=1)]])
            control.amend([job_id], Amendment(priority=5))
            assert seconds_until_claimed(backend, listener, job_id) < SOON


def test_a_wake_up_may_say_anything(backend):
    with snapshot(), psycopg.connect(address(), autocommit=True) as other:
        churn(40_000)
        with floors_up(backend) as listener:
            for payload in ["x", "nan", "inf", "-inf", "1e400", "-1", "🙂", "1_0"]:
                other.execute("SELECT pg_notify('jobqueue.public', %s)", [payload])
                assert listener.hear(5)
                until(lambda: not (take(backend) or backend._looks.floors._is_told))
