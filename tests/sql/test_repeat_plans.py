"""Tests of the cost of debounced and throttled jobs, and of samples: the same however many jobs there are."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest
from django.db import connections

from jobqueue.testing.contract.harness import draft
from jobqueue.testing.contract.repeating import debounced, throttled
from tests.conftest import make_sql_backend
from tests.sql.test_plans import (
    FAR_AHEAD,
    FEW,
    MANY,
    RUNNING,
    Explained,
    Steps,
    analyse,
    blocks,
    costlier,
    fill,
    undone,
    walks,
)

CAP = 10
#: An index of more jobs is deeper.
DEEPER = Counter(dict.fromkeys(("debounced", "moved", "after a running job", "throttled", "standing", "sampled"), 20))


def running_jobs_with_keys(alias, count):
    fill(alias, count, lease_until=f"'{FAR_AHEAD}'", unique_key="'key-' || i", **RUNNING)


def queued_jobs_with_keys(alias, count):
    fill(alias, count, unique_key="'key-' || i")


def completed_jobs_with_keys(alias, count):
    fill(alias, count, status="'completed'", unique_key="'key-' || i")


def queued_jobs_of_many_queues(alias, count):
    fill(alias, count, queue="'queue-' || (i % 50)")


CROWDS = [running_jobs_with_keys, queued_jobs_with_keys, completed_jobs_with_keys, queued_jobs_of_many_queues]
each_crowd = pytest.mark.parametrize("crowd", CROWDS, ids=lambda crowd: crowd.__name__)


def repeat(backend, measured, alias):
    """Enqueue what repeats, in each of the ways that it can go, and take a sample."""
    with measured("debounced"):
        backend.enqueue([debounced()])
    with measured("moved"):
        backend.enqueue([debounced()])
    (running,) = backend.enqueue([draft(unique_key="running")])
    with connections[alias].cursor() as cursor:
        cursor.execute("UPDATE job_queue SET status = 'in_progress' WHERE id = %s", [running.id])
    with measured("after a running job"):
        assert backend.enqueue([debounced(unique_key="running")])[0].created
    with measured("throttled"):
        backend.enqueue([throttled(unique_key="mail")])
    with measured("standing"):
        assert not backend.enqueue([throttled(unique_key="mail")])[0].created
    with measured("sampled"):
        backend.gauges.sample({"default": CAP, "queue-7": CAP}, timedelta(seconds=1))


def steps():
    backend = make_sql_backend("default", None)
    with undone("default"):
        found = Steps(connections["default"])
        repeat(backend, found, "default")
    return found


@pytest.mark.sqlite
@each_crowd
def test_repeating_on_sqlite_costs_the_same_among_fifty_times_as_many(fresh, crowd):
    fresh("default")
    crowd("default", FEW)
    few = steps()
    fresh("default")
    crowd("default", MANY)
    assert costlier(steps(), few, one_pass=0) == {}
    analyse("default")
    assert costlier(steps(), few, one_pass=0) == {}


def plans():
    backend = make_sql_backend("postgres", None)
    explained = Explained("postgres")
    with undone("postgres"):
        repeat(backend, explained, "postgres")
    return explained.plans


@pytest.mark.postgres
@each_crowd
def test_repeating_on_postgres_costs_the_same_among_fifty_times_as_many(fresh, crowd):
    fresh("postgres")
    crowd("postgres", FEW)
    few = blocks(plans())
    fresh("postgres")
    crowd("postgres", MANY)
    for prepare in (lambda: None, lambda: analyse("postgres")):
        prepare()
        found = plans()
        assert costlier(blocks(found), few + DEEPER, one_pass=0) == {}
        assert walks(found) == set()
