"""Lists among many rows: which index serves them, and that what they visit does not grow with the table."""

from __future__ import annotations

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext

from jobqueue.admin import listing
from jobqueue.clock import SYSTEM
from jobqueue.models import Job
from jobqueue.testing.contract.harness import draft

MANY = 20_000
#: Of SQLite's virtual machine, for a page and a count to 100; a walk through the table takes hundreds of thousands.
FEW_STEPS = 30_000
FEW_ROWS = 500


@pytest.fixture
def crowd(queue, monkeypatch):
    """Many completed jobs, each with a key and a tenant; the count stops early, so that it cannot hide a walk."""
    monkeypatch.setattr(listing, "CAP", 100)
    now = SYSTEM.now()
    one = {"type": "resize", "payload": {}, "scheduled_at": now, "created_at": now, "updated_at": now}
    jobs = [
        Job(id=draft().id, status="completed", idempotency_key=f"key-{number}", tenant="acme", **one)
        for number in range(MANY)
    ]
    Job.objects.using(queue.alias).bulk_create(jobs, batch_size=900)
    with connections[queue.alias].cursor() as cursor:
        cursor.execute("ANALYZE job_queue")
    yield jobs
    with connections[queue.alias].cursor() as cursor:
        cursor.execute("DELETE FROM job_queue")
        cursor.execute("ANALYZE job_queue")


SEARCHES = {
    "everything": lambda jobs: {},
    "by status": lambda jobs: {"status": "completed"},
    "by id": lambda jobs: {"q": jobs[7].pk},
    "by the beginning of an id": lambda jobs: {"q": jobs[7].pk[:24]},
    "by key": lambda jobs: {"q": "key-7"},
    "by tenant": lambda jobs: {"q": "acme"},
    "what is queued": lambda jobs: {"status": "queued"},
    "what runs": lambda jobs: {"status": "in_progress"},
}


def statements(queue, operator, query):
    with CaptureQueriesContext(connections[queue.alias]) as queries:
        assert operator.list(**query).status_code == 200
    return [one["sql"] for one in queries if 'FROM "job_queue"' in one["sql"]]


def steps(connection, statement):
    """Count what SQLite's virtual machine does for a statement, in hundreds."""
    made = [0]

    def count():
        made[0] += 100
        return 0

    connection.ensure_connection()
    connection.connection.set_progress_handler(count, 100)
    try:
        with connection.cursor() as cursor:
            cursor.execute(statement)
            cursor.fetchall()
    finally:
        connection.connection.set_progress_handler(None, 0)
    return made[0]


def visited(connection, statement):
    """Count the rows that Postgres takes from the table for a statement."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}")
        todo, rows = [cursor.fetchone()[0][0]["Plan"]], 0
    while todo:
        node = todo.pop()
        todo += node.get("Plans", [])
        if "Scan" in node["Node Type"]:
            rows += (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
    return rows


def test_no_list_visits_more_than_a_few_of_many_rows(queue, operator, crowd):
    connection = connections[queue.alias]
    costs, most = (steps, FEW_STEPS) if connection.vendor == "sqlite" else (visited, FEW_ROWS)
    found = {
        (name, statement): costs(connection, statement)
        for name, query in SEARCHES.items()
        for statement in statements(queue, operator, query(crowd))
    }
    assert len(found) >= 2 * len(SEARCHES)
    assert {key: cost for key, cost in found.items() if cost > most} == {}
