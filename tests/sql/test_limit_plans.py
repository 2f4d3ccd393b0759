"""Tests of the plans of claims under limits: ranges of indexes, on tables with and without statistics."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest
from django.db import connections

from jobqueue.backends.postgresql import statements, values
from jobqueue.backends.postgresql.claims import limit_statements
from jobqueue.backends.sqlite.claims import limited_claims
from jobqueue.testing.contract.harness import request
from tests.sql.test_plans import FAR_AHEAD, SERIES, fill

GROUP = {"queue": "default", "type": "resize", "priority": 5}
GIVEN = {
    **GROUP,
    **values.of_request(request()),
    "limited_types": ["resize"],
    "limited_queues": ["mail%"],
    "places": ["type:resize"],
    "groups": json.dumps([GROUP | {"most": 64}]),
    "after": "",
    "most": 200,
    "keys": json.dumps([{"key": "a", "most": 2}]),
    "accounts": json.dumps([{"place": "type:resize", "key": ""}]),
}
#: The index that each statement reads, by the statement's name.
INDEXES = {
    "GROUPS": "job_queue_ready_type",
    "RUNNING": "job_queue_leased",
    "FIRST": "job_queue_ready_type",
    "HEADS": "job_queue_ready_key",
    "FIRST_OF_KEYS": "job_queue_ready_key",
    "STARTS": "job_queue_start_window",
    "PRUNE": "job_queue_start_end",
}


@pytest.fixture(params=[False, True], ids=["never analysed", "analysed"])
def filled(request, alias):
    """A table with 20,000 jobs of ten keys, and some that run."""
    quoted = "'{{\"tenant\":\"' || (i % 10) || '\"}}'"
    fill(alias, 20_000, concurrency_key=quoted, priority="5")
    with connections[alias].cursor() as cursor:
        starts = f"'type:' || (i % 100), '', 1, '{FAR_AHEAD}'"
        count = SERIES[connections[alias].vendor].format(count=5_000)
        cursor.execute(f"{count} INSERT INTO job_queue_start (place, key, count, ends_at) SELECT {starts} FROM s")
    running = {"status": "'in_progress'", "fence": "1", "lease_owner": "'w'", "lease_until": f"'{FAR_AHEAD}'"}
    fill(alias, 50, name="held", **running)
    if request.param:
        with connections[alias].cursor() as cursor:
            cursor.execute("ANALYZE")
    return alias


@pytest.mark.postgres
@pytest.mark.parametrize("alias", ["postgres"], indirect=True)
@pytest.mark.parametrize("name", INDEXES)
def test_plans_on_postgres(filled, name):
    with connections[filled].cursor() as cursor:
        cursor.execute("BEGIN")
        for setting in statements.SESSION.split("; "):
            cursor.execute(setting.replace("SET ", "SET LOCAL "))
        text = getattr(limit_statements, name).replace("@now", "statement_timestamp()")
        cursor.execute(f"EXPLAIN (ANALYZE) {text}", GIVEN)
        plan = "\n".join(row[0] for row in cursor.fetchall())
        cursor.execute("ROLLBACK")
    assert INDEXES[name] in plan
    assert "Seq Scan on job_queue" not in plan
    for line in plan.splitlines():  # the most that one node reads: a window, or the jobs that run
        rows = int(line.split("rows=")[-1].split()[0]) if "actual" in line else 0
        assert rows <= 200, plan


@pytest.mark.parametrize("alias", ["default"], indirect=True)
@pytest.mark.parametrize("name", ["RUNNING", "FIRST", "NEXT_KEY", "FIRST_OF_KEY", "STARTS", "PRUNE"])
def test_plans_on_sqlite(filled, name):
    expected = {"NEXT_KEY": "job_queue_ready_key", "FIRST_OF_KEY": "job_queue_ready_key"} | INDEXES
    given = {**GROUP, "now": FAR_AHEAD, "key": "a", "most": 5}
    text = getattr(limited_claims, name)
    with closing(sqlite3.connect(connections[filled].settings_dict["NAME"], uri=True)) as driver:
        marks = text.count("?")
        plan = driver.execute(f"EXPLAIN QUERY PLAN {text}", ("a",) * marks if marks else given).fetchall()
    told = " ".join(row[-1] for row in plan)
    assert expected[name] in told, told
    assert "SCAN job_queue" not in told.replace("SCAN job_queue USING INDEX job_queue_leased", ""), told
    assert "TEMP B-TREE FOR ORDER BY" not in told, told
