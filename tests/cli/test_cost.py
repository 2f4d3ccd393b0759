"""Tests of the commands' cost among many jobs: queued and running ones are read from small indexes."""

from __future__ import annotations

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext

from tests.sql.test_plans import FAR_AHEAD, RUNNING, fill

EXPLAIN = {"sqlite": "EXPLAIN QUERY PLAN ", "postgresql": "EXPLAIN "}


@pytest.mark.parametrize("analysed", [False, True], ids=["fresh", "analysed"])
def test_no_finished_job_is_read_to_count_what_waits_and_runs(queue, alias, analysed):
    fill(alias, 20_000, status="'completed'")
    fill(alias, 200, name="waiting")
    fill(alias, 200, name="running", lease_until=f"'{FAR_AHEAD}'", **RUNNING)
    connection = connections[alias]
    with connection.cursor() as cursor:  # other tests have left dead entries in the indexes
        cursor.execute("REINDEX TABLE job_queue" if connection.vendor == "postgresql" else "REINDEX job_queue")
    with CaptureQueriesContext(connection) as seen, connection.cursor() as cursor:
        if analysed:
            cursor.execute("ANALYZE")
        rows = queue.jobs.stats()
    assert [(row.queued, row.in_progress) for row in rows] == [(200, 200)]
    sent = [query["sql"] for query in seen if "job_queue" in query["sql"]]
    with connection.cursor() as cursor:
        plans = []
        for sql in sent:
            cursor.execute(EXPLAIN[connection.vendor] + sql)
            plans.append(str(cursor.fetchall()))
    assert len(plans) == 2
    assert "job_queue_ready" in plans[0]
    assert "job_queue_leased" in plans[1]
