"""Tests of the plans of claims from fair queues: ranges of indexes, on tables with and without statistics."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest
from django.db import connections

from jobqueue.backends.postgresql import statements
from jobqueue.backends.postgresql.claims import turn_statements
from jobqueue.backends.sql.ports.statements import turns as port_statements
from jobqueue.backends.sqlite.claims import turns as sqlite_turns
from jobqueue.models import Job
from jobqueue.policy.limits.limits import LimitBook
from jobqueue.testing import VirtualClock
from jobqueue.testing.contract.fairness import fair
from tests.conftest import make_sql_backend
from tests.sql.test_plans import FAR_AHEAD, SERIES, fill

GROUP = {"queue": "default", "type": "resize", "priority": 5}
GIVEN = {
    **GROUP,
    "groups": json.dumps([GROUP | {"after": "3", "due_at": "-infinity", "id": ""}]),
    "turns": json.dumps([GROUP | {"key": "7", "most": 5}]),
    "newest": 2**62,
    "lines": 2_000,
    "slice": 32,
    "further": 128,
    "most": 50,
    "kept": 60,
    "now": FAR_AHEAD,
    "after": "",
    "key": "7",
    "due_at": FAR_AHEAD,
    "id": "",
}


@pytest.fixture(params=[False, True], ids=["never analysed", "analysed"])
def filled(request, alias):
    """A table with 20,000 jobs of a thousand turns, and 5,000 lines of claims."""
    fill(alias, 20_000, fair_key="i % 1000", priority="5")
    with connections[alias].cursor() as cursor:
        count = SERIES[connections[alias].vendor].format(count=5_000)
        line = f"'default', 5, i % 100, 1, i, i, '{FAR_AHEAD}'"
        columns = "queue, priority, key, count, finish, clock, served_at"
        cursor.execute(f"{count} INSERT INTO job_queue_turn ({columns}) SELECT {line} FROM s")
        if request.param:
            cursor.execute("ANALYZE")
    return alias


@pytest.mark.postgres
@pytest.mark.parametrize("alias", ["postgres"], indirect=True)
@pytest.mark.parametrize(
    ("name", "indexes"),
    [
        ("LOOK", ["job_queue_turn_order", "job_queue_ready_turn", "job_queue_ready_type"]),
        ("FIRST_OF_TURNS", ["job_queue_ready_turn"]),
        ("PRUNE", ["job_queue_turn_pkey"]),
    ],
)
def test_plans_on_postgres(filled, name, indexes):
    text = getattr(turn_statements, name).replace("@now", "statement_timestamp()")
    plan = _explained(filled, text, statements.SESSION.split("; "))
    for index in indexes:
        assert index in plan, plan
    assert "Seq Scan on job_queue" not in plan
    for line in plan.splitlines():
        rows = int(line.split("rows=")[-1].split()[0]) if "actual" in line else 0
        assert rows <= (5_000 if name == "PRUNE" else 300), plan


@pytest.mark.postgres
@pytest.mark.parametrize("alias", ["postgres"], indirect=True)
@pytest.mark.parametrize("name", ["TYPES", "TURNS", "WAITING", "BEFORE", "WITHOUT", "WITHOUT_BEFORE"])
def test_plans_of_the_port_on_postgres(filled, name):
    plan = _explained(filled, getattr(port_statements, name), [])
    assert "Seq Scan on job_queue" not in plan, plan


def _explained(alias, text, settings):
    with connections[alias].cursor() as cursor:
        cursor.execute("BEGIN")
        for setting in settings:
            cursor.execute(setting.replace("SET ", "SET LOCAL "))
        cursor.execute(f"EXPLAIN (ANALYZE) {text}", GIVEN)
        plan = "\n".join(row[0] for row in cursor.fetchall())
        cursor.execute("ROLLBACK")
    return plan


@pytest.mark.parametrize("alias", ["default"], indirect=True)
@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("LINES", "SEARCH job_queue_turn USING"),
        ("FIRST_TURN", "job_queue_ready_turn"),
        ("NEXT_TURN", "job_queue_ready_turn"),
        ("FIRST_OF_TURN", "job_queue_ready_turn"),
        ("PLACES", "job_queue_ready_type"),
        ("FURTHER_JOBS", "job_queue_ready_type"),
        ("PRUNE", "PRIMARY KEY"),
    ],
)
def test_plans_on_sqlite(filled, name, index):
    text = getattr(sqlite_turns, name)
    told = _told(filled, text, ("a",) * text.count("?") if "?" in text else GIVEN)
    assert index in told, told
    assert "TEMP B-TREE FOR ORDER BY" not in told, told


@pytest.mark.parametrize("alias", ["default"], indirect=True)
@pytest.mark.parametrize("name", ["TYPES", "TURNS", "WAITING", "BEFORE", "WITHOUT", "WITHOUT_BEFORE"])
def test_plans_of_the_port_on_sqlite(filled, name):
    text = getattr(port_statements, name)
    for parameter in GIVEN:
        text = text.replace(f"%({parameter})s", f":{parameter}")
    told = _told(filled, text, GIVEN)
    assert "job_queue_ready_t" in told, told
    assert "SCAN job_queue" not in told.replace("SCAN job_queue USING", ""), told


def _told(alias, text, given):
    with closing(sqlite3.connect(connections[alias].settings_dict["NAME"], uri=True)) as driver:
        return " ".join(row[-1] for row in driver.execute(f"EXPLAIN QUERY PLAN {text}", given))


def test_a_claim_without_fair_queues_takes_the_same_statements(alias):
    backend = make_sql_backend(alias, VirtualClock())
    seen = []
    with connections[alias].execute_wrapper(lambda run, sql, *rest: seen.append(sql) or run(sql, *rest)):
        backend.cycle("me", (), fair(1, types=frozenset({"other"}), queue_options={}, entries=()))
    assert not any("job_queue_turn" in one or "fair_key" in one for one in seen)
    assert not LimitBook()
    assert not Job.objects.using(alias).exists()
