"""Tests of locked rows of workers and metrics: they are skipped without waiting."""

from __future__ import annotations

from datetime import timedelta

import psycopg
import pytest
from django.db import connections

from jobqueue.models import Metric, Worker
from jobqueue.records import Tally
from jobqueue.testing.clock import NOON
from jobqueue.testing.contract.ports.registering import worker
from tests.conftest import make_sql_backend
from tests.waking.test_silence import address

pytestmark = pytest.mark.postgres


@pytest.fixture
def backend(databases):
    made = make_sql_backend("postgres", None)
    with connections["postgres"].cursor() as cursor:
        cursor.execute("SET lock_timeout = '1s'")  # so that waiting fails
    yield made
    connections["postgres"].close()


@pytest.fixture
def locked(backend):
    """A function that has somebody else lock all rows of workers, until the test ends."""
    with psycopg.connect(address()) as other:
        yield lambda: other.execute("SELECT owner FROM job_queue_worker FOR UPDATE").fetchall()
        other.rollback()


def test_a_worker_whose_row_is_locked_tells_its_news_later(backend, locked):
    backend.workers.enlist(worker("one", busy=1))
    assert locked() == [("one",)]
    backend.workers.enlist(worker("one", busy=2))
    assert [one.busy for one in backend.workers.all()] == [1]


def test_the_row_of_a_forgotten_worker_that_is_locked_keeps_nobody_waiting(backend, locked):
    backend.workers.enlist(worker("old"))
    long_ago = backend.now() - timedelta(days=2)
    Worker.objects.using("postgres").update(seen_at=long_ago)
    assert locked() == [("old",)]
    backend.workers.enlist(worker("new"))
    assert [one.owner for one in backend.workers.all()] == ["new", "old"]


def test_a_worker_that_ends_does_not_wait_for_its_row(backend, locked):
    backend.workers.enlist(worker("one"))
    assert locked() == [("one",)]
    backend.workers.dismiss("one")
    assert [one.owner for one in backend.workers.all()] == ["one"]


# Figures


def completed_of(backend):
    return [one.tally.completed for one in backend.metrics.stretches(60, NOON)]


@pytest.fixture
def locked_figures(backend):
    """A function that has somebody else lock rows of figures, until the test ends."""
    with psycopg.connect(address()) as other:
        yield lambda which: other.execute(f"SELECT type FROM job_queue_metric WHERE {which} FOR UPDATE").fetchall()
        other.rollback()


@pytest.mark.parametrize("which", ["type = ''", "type = 'greet' AND span = 600"])
def test_what_is_to_be_added_to_locked_figures_is_kept_as_a_whole_for_later(backend, locked_figures, which):
    tallies = [Tally("mail", "greet", completed=1), Tally("mail", "resize", completed=2)]
    assert backend.metrics.add(NOON, tallies)
    assert locked_figures(which)
    assert not backend.metrics.add(NOON, tallies)
    assert completed_of(backend) == [3]
    assert backend.metrics.add(NOON, tallies[1:]) is (which != "type = ''")


def test_a_depth_whose_row_is_locked_is_noted_later(backend, locked_figures):
    assert backend.metrics.add(NOON, [Tally("mail", "greet", completed=1)])
    assert locked_figures("type = ''")
    assert not backend.metrics.sample(NOON)
    assert [one.queued for one in backend.metrics.stretches(60, NOON)] == [None]


def test_old_figures_that_are_locked_keep_nobody_waiting(backend, locked_figures):
    assert backend.metrics.add(NOON, [Tally("mail", "greet", completed=1)])  # which is months ago
    assert locked_figures("type = 'greet'")
    assert backend.metrics.sample(backend.now())
    left = set(Metric.objects.using("postgres").filter(begins_at__lt=NOON + timedelta(days=1)).values_list("type"))
    assert left == {("greet",)}
