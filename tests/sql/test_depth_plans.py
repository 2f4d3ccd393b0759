"""Tests of the cost of the queue's depth: what is counted is read, and nothing beyond the cap."""

from __future__ import annotations

import pytest
from django.db import connections

from jobqueue.backends.postgresql import session
from jobqueue.backends.sql.ports import metrics
from jobqueue.clock import SYSTEM
from jobqueue.observe.health import observation
from jobqueue.observe.health.flow import FLOOD_FOR
from jobqueue.policy.stretches import begin_of
from jobqueue.testing.contract.harness import draft, put_all
from tests.conftest import make_sql_backend
from tests.sql.looks import plans, same_on_postgres, same_on_sqlite
from tests.sql.test_plans import FAR_AHEAD, RUNNING, all_visible, analyse, fill, most_rows, walks

CAP = 100
#: What is due and what is not are counted apart, each with one more than the cap; and a probe a priority besides.
MOST_ROWS = 25 * CAP


def due_jobs(alias, count):
    fill(alias, count)


def due_jobs_of_one_priority(alias, count):
    fill(alias, count, priority="5")


def future_jobs(alias, count):
    fill(alias, count, scheduled_at=f"'{FAR_AHEAD}'")


def running_jobs(alias, count):
    fill(alias, count, lease_until=f"'{FAR_AHEAD}'", **RUNNING)


def completed_jobs(alias, count):
    fill(alias, count, status="'completed'")
    fill(alias, 20, name="some")


def many_queues(alias, count):
    fill(alias, count, queue="'queue-' || (i / 100)")


#: A moment of its own for each job, all of them past.
MOMENTS = {
    "sqlite": "strftime('%Y-%m-%dT%H:%M:%fZ', 1500000000 + i, 'unixepoch')",
    "postgresql": "to_timestamp(1500000000 + i)",
}


def many_queues_of_few_jobs(alias, count):
    """Of which Postgres, while it knows nothing of the table, would rather walk the claim's index for each."""
    names = {"queue": "'queue-' || (i % 4999)", "type": "'type-' || (i % 4999)"}
    status = "CASE WHEN i % 5 = 0 THEN 'queued' ELSE 'completed' END"
    fill(alias, count, **names, status=status, scheduled_at=MOMENTS[connections[alias].vendor])


CROWDS = [due_jobs, due_jobs_of_one_priority, future_jobs, running_jobs, completed_jobs, many_queues]
each_crowd = pytest.mark.parametrize("crowd", CROWDS, ids=lambda crowd: crowd.__name__)


def look(backend, measured):
    """Look how deep the queue is, at no more than ten of its parts."""
    with measured("depths"):
        found = backend.metrics.depths(cap=CAP, most=10)
    assert 1 <= len(found) <= 10
    assert all(one.queued <= CAP for one in found)


@pytest.mark.sqlite
@each_crowd
def test_a_look_on_sqlite_costs_the_same_among_fifty_times_as_many(fresh, crowd):
    same_on_sqlite(fresh, crowd, look)


@pytest.mark.postgres
@each_crowd
def test_a_look_on_postgres_costs_the_same_among_fifty_times_as_many(fresh, crowd):
    for found in same_on_postgres(fresh, crowd, look):
        assert len(found) == 6  # which there are, what waits and what runs, for their values and for any
        assert most_rows(found) < MOST_ROWS
        assert walks(found) == set()


@pytest.mark.postgres
def test_postgres_looks_for_few_jobs_of_many_kinds_in_the_index_of_their_kind(fresh):
    fresh("postgres")
    many_queues_of_few_jobs("postgres", 120_000)
    for prepare in (lambda: None, lambda: analyse("postgres")):
        prepare()
        told = str(plans(look))
        assert "'job_queue_ready_type'" in told
        assert "'job_queue_ready'" not in told


def test_many_groups_are_counted_less_far_each_and_what_the_small_ones_leave_goes_to_the_large(queue, monkeypatch):
    monkeypatch.setattr(metrics, "COUNTED_TOGETHER", 12)
    for number in range(4):
        put_all(queue, *(draft(queue=f"queue-{number}") for _ in range(1 + 2 * number)))
    assert [(one.queued, one.capped, one.due) for one in queue.metrics.depths()] == [
        (1, False, 1),
        (3, False, 3),
        (4, True, 4),
        (4, True, 4),
    ]
    assert [one.queued for one in queue.metrics.depths(most=2)] == [1, 3]
    assert [one.queued for one in queue.metrics.depths(cap=2)] == [1, 2, 2, 2]


@pytest.mark.postgres
@pytest.mark.parametrize("seen", [False, True])
def test_postgres_counts_less_far_where_each_row_must_be_looked_at(fresh, seen, monkeypatch):
    """A sample of the depth isn't read while somebody waits for a page, and is counted as far as ever."""
    monkeypatch.setattr(session, "_SOON", 0.0003)
    fresh("postgres")
    due_jobs("postgres", 300)
    fill("postgres", 300, name="dead", status="'dead_letter'")
    if seen:
        all_visible("postgres")
    backend = make_sql_backend("postgres", None)
    (depth,), (dead,) = backend.metrics.depths(), backend.health.dead_letters()
    assert (depth.queued, depth.capped) == (dead.count, dead.capped) == ((300, False) if seen else (99, True))
    now = backend.now()
    assert backend.metrics.sample(now)
    assert backend.metrics.stretches(60, begin_of(now, 60))[0].queued == 300


def test_the_tenants_of_jobs_that_are_counted_less_far_are_sampled(queue, monkeypatch):
    monkeypatch.setattr(metrics, "COUNTED_TOGETHER", 12)
    put_all(queue, *(draft(tenant="acme", scheduled_at=SYSTEM.now() - FLOOD_FOR) for _ in range(20)))
    sample = observation.look(queue).tenants
    assert [(name, set(tenants)) for name, tenants in sample.items()] == [(("default", "resize"), {"acme"})]
