"""Tests of the cost of the queue's health: what is looked at costs the same however many jobs there are."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest
from django.db import connections

from tests.conftest import make_sql_backend
from tests.sql.looks import same_on_postgres, same_on_sqlite
from tests.sql.test_plans import (
    FAR_AHEAD,
    LONG_AGO,
    MANY,
    RUNNING,
    Explained,
    Steps,
    analyse,
    fill,
    undone,
    walks,
)

CAP = 100
#: The jobs in a sample of tenants: 25 at each end of each of ten priorities.
SAMPLE = 500
#: An index of more jobs is deeper.
DEEPER = Counter(dict.fromkeys(("dead letters", "ended leases", "tenants", "first due"), 20))


def dead_letters(alias, count):
    fill(alias, count, status="'dead_letter'", error_fingerprint="'kind-' || (i % 7)", completed_at=f"'{LONG_AGO}'")


def dead_letters_of_many_types(alias, count):
    fill(alias, count, status="'dead_letter'", queue="'queue-' || (i % 8)", type="'type-' || (i % 8)")


def completed_jobs(alias, count):
    fill(alias, count, status="'completed'")


def due_jobs_of_tenants(alias, count):
    fill(alias, count, tenant="'tenant-' || (i % 7)")


def future_jobs(alias, count):
    fill(alias, count, scheduled_at=f"'{FAR_AHEAD}'")


def lapsed_jobs(alias, count):
    fill(alias, count, lease_until=f"'{LONG_AGO}'", **RUNNING)


CROWDS = [dead_letters, dead_letters_of_many_types, completed_jobs, due_jobs_of_tenants, future_jobs, lapsed_jobs]
each_crowd = pytest.mark.parametrize("crowd", CROWDS, ids=lambda crowd: crowd.__name__)


def look(backend, measured):
    """Read all that the evaluation of the queue's health reads beside its depth."""
    with measured("dead letters"):
        assert len(backend.health.dead_letters(cap=CAP, most=10)) <= 10
    with measured("critical dead letters"):
        assert len(backend.health.critical_dead({"resize"}, limit=5)) <= 5
    with measured("ended leases"):
        assert sum(one.jobs for one in backend.health.lapsed_leases(timedelta(0), cap=CAP)) <= CAP
    with measured("tenants"):
        assert sum(backend.health.tenants("default", "resize").values()) <= SAMPLE
    with measured("first due"):
        assert len(backend.limits.first_due("default", "resize")) <= SAMPLE / 2


@pytest.mark.sqlite
@each_crowd
def test_a_look_on_sqlite_costs_the_same_among_fifty_times_as_many(fresh, crowd):
    same_on_sqlite(fresh, crowd, look)


@pytest.mark.postgres
@each_crowd
def test_a_look_on_postgres_costs_the_same_among_fifty_times_as_many(fresh, crowd):
    for found in same_on_postgres(fresh, crowd, look, deeper=DEEPER):
        assert walks(found, few=SAMPLE) == set()


@pytest.mark.parametrize("analysed", [False, True])
def test_running_jobs_are_looked_at_by_their_leases_alone(fresh, alias, analysed, settings):
    fresh(alias)
    completed_jobs(alias, MANY)
    fill(alias, 200, name="running", lease_until=f"'{FAR_AHEAD}'", **RUNNING)
    if analysed:
        analyse(alias)
    backend = make_sql_backend(alias, None)
    if alias == "default":
        connections[alias].ensure_connection()
        found = Steps(connections[alias])
        with found("quiet"):
            backend.health.quiet_jobs(timedelta(0))
        assert found["quiet"] < 200 * 50
    else:
        explained = Explained(alias)
        with undone(alias), explained("quiet"):
            backend.health.quiet_jobs(timedelta(0))
        assert walks(explained.plans) == set()
