"""Tests of the cost of questions: a page of queued or running jobs costs the same however many jobs there are."""

from __future__ import annotations

from collections import Counter

import pytest

from jobqueue.records.outstanding import Behind
from tests.sql.looks import same_on_postgres, same_on_sqlite
from tests.sql.test_plans import LONG_AGO, RUNNING, a_backlog, fill, walks

CAP = 100
DEEPER = Counter(dict.fromkeys(("running", "first page", "next page", "next kind"), 20))


def many_jobs(alias, count):
    a_backlog(alias, count)
    fill(alias, count, name="typed", queue="'queue-' || (i % 8)", type="'type-' || (i % 8)")
    fill(alias, count, name="done", status="'completed'")
    fill(alias, count, name="running", lease_until=f"'{LONG_AGO}'", **RUNNING)


def look(backend, measured):
    """Read what the questions read."""
    with measured("running"):
        assert len(backend.outstanding.running(CAP)) <= CAP
    with measured("first page"):
        page = backend.outstanding.queued(CAP)
    place = page[-1].place
    with measured("next page"):
        backend.outstanding.queued(CAP, place)
    with measured("next kind"):
        backend.outstanding.queued(CAP, Behind(place.queue, place.type))


@pytest.mark.sqlite
def test_a_page_on_sqlite_costs_the_same_among_fifty_times_as_many(fresh):
    same_on_sqlite(fresh, many_jobs, look)


@pytest.mark.postgres
def test_a_page_on_postgres_costs_the_same_among_fifty_times_as_many(fresh):
    for found in same_on_postgres(fresh, many_jobs, look, deeper=DEEPER):
        assert walks(found, few=CAP) == set()
