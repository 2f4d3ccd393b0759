"""Tests of the cost of a scrape: it reads as much among fifty thousand jobs as among a thousand."""

from __future__ import annotations

from collections import Counter

import pytest

from jobqueue.observe.prometheus.scrape import scrape
from tests.sql.looks import same_on_postgres, same_on_sqlite
from tests.sql.test_plans import fill, walks


def completed_jobs(alias, count):
    fill(alias, count, status="'completed'")


def look(backend, measured):
    with measured("scrape"):
        assert scrape(backend, lambda _backend: None).names.folded_kinds == 0


@pytest.mark.sqlite
def test_a_scrape_on_sqlite_costs_the_same_among_fifty_times_as_many(fresh):
    same_on_sqlite(fresh, completed_jobs, look)


@pytest.mark.postgres
def test_a_scrape_on_postgres_costs_the_same_among_fifty_times_as_many(fresh):
    for found in same_on_postgres(fresh, completed_jobs, look, deeper=Counter({"scrape": 20})):
        assert found
        assert walks(found) == set()
