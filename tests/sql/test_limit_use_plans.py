"""Tests of the cost of `why` under limits: what is in use is read at the same cost however many jobs and starts."""

from __future__ import annotations

from collections import Counter

import pytest
from django.db import connections

from jobqueue.policy.limits.limits import LimitBook
from jobqueue.testing.contract.limiting import at_once, rate
from tests.sql.looks import same_on_postgres, same_on_sqlite
from tests.sql.test_plans import FAR_AHEAD, LONG_AGO, RUNNING, SERIES, fill, walks

BOOK = LimitBook([at_once(3), at_once(1, key="tenant"), rate(3, per=60.0), rate(1, per=60.0, key="tenant")])
KINDS = [("default", "resize", f'{{"tenant":"{number}"}}') for number in range(3)]
#: An index of more rows is deeper.
DEEPER = Counter({"uses": 40})


def due_jobs(alias, count):
    fill(alias, count, concurrency_key="'{{\"tenant\":\"' || (i % 10) || '\"}}'")


def ended_jobs(alias, count):
    fill(alias, count, status="'completed'")


def starts(alias, count):
    """Starts of other accounts, and of these that have left their windows."""
    with connections[alias].cursor() as cursor:
        series = SERIES[connections[alias].vendor].format(count=count)
        places = "CASE i % 2 WHEN 0 THEN 'type:other' ELSE 'type:resize:rate:60:' END"
        ends = f"CASE i % 2 WHEN 0 THEN {_moment(alias, FAR_AHEAD)} ELSE {_moment(alias, LONG_AGO)} END"
        values = f"{places}, '', 1, {ends}"
        cursor.execute(f"{series} INSERT INTO job_queue_start (place, key, count, ends_at) SELECT {values} FROM s")
    ended_jobs(alias, 2_000)  # or all of the table would be read
    fill(alias, 20, name="held", lease_until=f"'{FAR_AHEAD}'", **RUNNING)


def _moment(alias, text):
    return f"'{text}'" if alias == "default" else f"'{text}'::timestamptz"


each_crowd = pytest.mark.parametrize("crowd", [due_jobs, ended_jobs, starts], ids=lambda crowd: crowd.__name__)


def look(backend, measured):
    """Read what `why` reads of a job under each kind of limit."""
    with measured("uses"):
        assert len(backend.limits.uses_of(BOOK, KINDS)) == 8


@pytest.mark.sqlite
@each_crowd
def test_why_on_sqlite_costs_the_same_among_fifty_times_as_many(fresh, crowd):
    same_on_sqlite(fresh, crowd, look)


@pytest.mark.postgres
@each_crowd
def test_why_on_postgres_costs_the_same_among_fifty_times_as_many(fresh, crowd):
    for found in same_on_postgres(fresh, crowd, look, deeper=DEEPER):
        assert walks(found, few=50) == set()
