"""Tests of the plans of claims in ordered queues: ranges of indexes, on tables with and without statistics."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest
from django.db import connections

from jobqueue.backends.postgresql import statements
from jobqueue.backends.postgresql.claims import lane_statements
from jobqueue.backends.sqlite.claims import lanes
from jobqueue.records import Hold
from tests.sql.test_plans import FAR_AHEAD, LONG_AGO, fill

LANE = {"queue": "imports", "lane": "a", "is_strict": True}
GIVEN = {
    "queue": "imports",
    "type": "resize",
    "priority": 5,
    "due_at": "-infinity",
    "id": "",
    "most": 200,
    "queues": ["imports"],
    "ended": ["due 1 w"],
    "after": json.dumps([{"queue": "imports", "lane": ""}]),
    "lanes": json.dumps([LANE, {**LANE, "lane": "b"}]),
}
STATEMENTS = {
    "UNPLACED": (lane_statements.UNPLACED, ["job_queue_ready_type"]),
    "MOVE_DUE": (lane_statements.MOVE_DUE, ["job_queue_lane_later"]),
    "LOCK_NEXT": (lane_statements.LOCK_NEXT, ["job_queue_lane_due"]),
    "NEXT_WAITING": (lane_statements.NEXT_LANES[Hold.WAITS], ["job_queue_lane_waiting"]),
    "NEXT_DEAD": (lane_statements.NEXT_LANES[Hold.IS_DEAD], ["job_queue_lane_dead"]),
    "STATES": (
        lane_statements.STATES,
        ["job_queue_lane_due", "job_queue_lane_waiting", "job_queue_lane_dead", "job_queue_leased"],
    ),
    "DEPTHS": (lane_statements.DEPTHS, ["job_queue_lane_due", "job_queue_lane_waiting"]),
}
ON_SQLITE = {
    "UNPLACED": (lanes.UNPLACED, "job_queue_ready_type"),
    "MOVE_DUE": (lanes.MOVE_DUE, "job_queue_lane_later"),
    "NEXT_LANE": (lanes.NEXT_LANE[Hold.IS_DUE], "job_queue_lane_due"),
    "DUE": (lanes.FIRST[Hold.IS_DUE], "job_queue_lane_due"),
    "WAITING": (lanes.FIRST[Hold.WAITS], "job_queue_lane_waiting"),
    "DEAD": (lanes.FIRST[Hold.IS_DEAD], "job_queue_lane_dead"),
    "RUNNING": (lanes.RUNNING, "job_queue_leased"),
}


@pytest.fixture(params=[False, True], ids=["never analysed", "analysed"])
def filled(request, alias):
    """A table with 20,000 jobs of ten lanes that are due, as many that wait, and some others."""
    place = {"queue": "'imports'", "lane": "char(97 + i % 10)", "lane_position": "i", "priority": "5"}
    if connections[alias].vendor == "postgresql":
        place["lane"] = "chr((97 + i % 10)::int)"
    fill(alias, 20_000, name="due", **place)
    fill(alias, 20_000, name="later", **place, scheduled_at=f"'{FAR_AHEAD}'")
    fill(alias, 1_000, name="dead", **place, status="'dead_letter'", completed_at=f"'{LONG_AGO}'")
    fill(alias, 5_000, name="other")
    running = {"status": "'in_progress'", "fence": "1", "lease_owner": "'w'", "lease_until": f"'{FAR_AHEAD}'"}
    fill(alias, 50, name="held", **place, **running)
    if request.param:
        with connections[alias].cursor() as cursor:
            cursor.execute("ANALYZE")
    return alias


@pytest.mark.postgres
@pytest.mark.parametrize("alias", ["postgres"], indirect=True)
def test_plans_on_postgres(filled):
    for name, (statement, indexes) in STATEMENTS.items():
        with connections[filled].cursor() as cursor:
            cursor.execute("BEGIN")
            for setting in statements.SESSION.split("; "):
                cursor.execute(setting.replace("SET ", "SET LOCAL "))
            cursor.execute(f"EXPLAIN (ANALYZE) {statement.replace('@now', 'statement_timestamp()')}", GIVEN)
            plan = "\n".join(row[0] for row in cursor.fetchall())
            cursor.execute("ROLLBACK")
        assert all(index in plan for index in indexes), (name, plan)
        assert "Seq Scan on job_queue" not in plan, (name, plan)
        sorts = [line for line in plan.splitlines() if "Sort Key" in line]
        assert not any("lane_position" in line for line in sorts), (name, plan)  # running jobs may be sorted
        for line in plan.splitlines():  # the most that one node reads: a window of each lane, or the jobs that run
            rows = float(line.split("rows=")[-1].split()[0]) if "actual" in line else 0
            assert rows <= 2 * 200 + 60, (name, plan)


@pytest.mark.parametrize("alias", ["default"], indirect=True)
def test_plans_on_sqlite(filled):
    given = {"queue": "imports", "type": "resize", "priority": 5, "lane": "a", "due_at": "", "id": "", "most": 200}
    with closing(sqlite3.connect(connections[filled].settings_dict["NAME"], uri=True)) as driver:
        for name, (text, index) in ON_SQLITE.items():
            plan = driver.execute(f"EXPLAIN QUERY PLAN {text}", given | {"now": LONG_AGO}).fetchall()
            told = " ".join(row[-1] for row in plan)
            assert f"SEARCH job_queue USING INDEX {index}" in told.replace("COVERING INDEX", "INDEX"), (name, told)
            assert "TEMP B-TREE FOR ORDER BY" not in told, (name, told)
        values = ("x",) * lanes.PLACE.count("?")
        told = " ".join(row[-1] for row in driver.execute(f"EXPLAIN QUERY PLAN {lanes.PLACE}", values))
        for index in ("due", "waiting", "dead"):
            assert f"job_queue_lane_{index} (queue=? AND lane=? AND lane_position" in told, told
        assert "SCAN" not in told, told
