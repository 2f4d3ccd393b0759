"""Tests of the query plans of lists: the number of visited rows is bounded, with and without statistics.

What waits for somebody is older than 20,000 jobs that are done: who walks along the primary key for it, walks far.
"""

from __future__ import annotations

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext

from jobqueue.admin.search import results
from jobqueue.backends.sql.search import plan
from jobqueue.models import Job
from tests.sql.conftest import remake
from tests.sql.test_plans import LONG_AGO, analyse, fill

MANY = 20_000
#: Of SQLite's virtual machine; a walk through the table takes more than twice as many.
FEW_STEPS = 60_000
#: A bitmap counts twice, in the index and in the table; a walk through the table takes more than 20,000.
FEW_ROWS = 6_000


@pytest.fixture(params=["never analysed", "analysed"])
def crowd(queue, monkeypatch, request):
    """Many completed jobs, and older ones that wait. The bounds are low, so that they cannot hide a walk."""
    monkeypatch.setattr(results, "CAP", 100)
    monkeypatch.setattr(plan, "NEWEST", 300)
    monkeypatch.setattr(plan, "SCATTERED", 250)
    monkeypatch.setattr(plan, "EXACT", 2_000)
    alias = queue.alias
    remake(alias)
    if connections[alias].vendor == "postgresql":
        with connections[alias].cursor() as cursor:
            cursor.execute("ALTER TABLE job_queue SET (autovacuum_enabled = false)")
    dead = {"status": "'dead_letter'", "error": "'on fire'", "completed_at": f"'{LONG_AGO}'"}
    fill(alias, 1_500, name="01", status="'queued'", tenant="'acme'")
    fill(alias, 250, name="02", error_fingerprint="'kind' || (i % 5)", tenant="'acme'", **dead)
    fill(alias, 1_000, name="03", error_fingerprint="'storm'", queue="'stormy'", type="'hail'", **dead)
    fill(alias, 1_500, name="04", error_fingerprint="'flood'", queue="'stormy'", type="'rain'", **dead)
    fill(alias, 200, name="05", status="'failed'")
    fill(alias, 20, name="06", status="'in_progress'", lease_owner="'me:1:2'")
    done = {"status": "'completed'", "tenant": "'acme'", "payload": '\'{{"x": {{"y": 1}}}}\''}
    about = {"idempotency_key": "'key-' || i", "type": "'type-' || (i % 50)", "parent_id": "'parent-' || (i % 40)"}
    fill(alias, MANY, name="07", **about, **done)
    if request.param == "analysed":
        analyse(alias)
    yield queue
    remake(alias)


ID = "07" + "7".zfill(24)
SEARCHES = {
    "everything": {},
    "everything, oldest first": {"o": "1"},
    "a whole id": {"q": ID},
    "the beginning of an id": {"q": ID[:24]},
    "the beginning of nearly every id": {"q": "id:0700*"},
    "the beginning of nearly every id, and a type": {"q": "id:0700* type:type-7"},
    "a key": {"q": "key-7"},
    "a word that is a type": {"q": "type-7"},
    "a word that is a tenant": {"q": "acme"},
    "a word that is nothing": {"q": "nonsense"},
    "a key and more": {"q": "key:key-7 type:type-7 error:x"},
    "completed": {"status": "completed"},
    "completed of a type": {"q": "status:completed type:type-7"},
    "queued": {"status": "queued"},
    "queued, oldest first": {"status": "queued", "o": "1"},
    "queued, the last page": {"status": "queued", "p": "1"},
    "queued of a type": {"status": "queued", "type": "resize"},
    "queued of a type that is none": {"status": "queued", "type": "nonsense"},
    "queued in a queue": {"status": "queued", "queue": "default"},
    "queued of a tenant": {"q": "status:queued tenant:acme"},
    "running": {"status": "in_progress"},
    "running of a type": {"status": "in_progress", "type": "resize"},
    "running on a worker": {"q": "worker:me:1:2"},
    "failed": {"status": "failed"},
    "failed lately": {"status": "failed", "created": "1h"},
    "dead": {"status": "dead_letter"},
    "dead by error": {"q": "status:dead_letter error:fire"},
    "dead of a queue and a type": {"q": "status:dead_letter queue:stormy type:rain"},
    "dead of a queue and a type, oldest first": {"q": "status:dead_letter queue:stormy type:rain", "o": "1"},
    "dead of a queue and a type, by error": {"q": "status:dead_letter queue:default type:resize error:fire"},
    "dead of a kind": {"q": "status:dead_letter fingerprint:kind1"},
    "dead of a kind and a tenant": {"q": "status:dead_letter fingerprint:kind1 tenant:acme"},
    "dead of a frequent kind": {"q": "status:dead_letter fingerprint:storm"},
    "dead of no kind": {"q": "status:dead_letter fingerprint:none"},
    "dead by payload": {"q": "status:dead_letter queue:default payload.x.y:1"},
    "failed or dead": {"q": "status:failed,dead_letter queue:default"},
    "failed or dead by error": {"q": "status:failed,dead_letter error:fire"},
    "a type": {"type": "type-7"},
    "a type that waits": {"type": "resize"},
    "a queue": {"queue": "stormy"},
    "an error": {"q": "error:fire"},
    "a payload": {"q": "payload.x.y:1"},
    "a payload that is none": {"q": "payload.x.y:2 payload.0.a:7"},
    "a kind of failure": {"q": "fingerprint:storm"},
    "since lately": {"created": "15m"},
    "since long ago": {"q": "after:2019-01-01 type:type-7"},
    "before a moment": {"q": "before:2026-01-01 tenant:acme"},
    "before all": {"q": "before:1999-01-01"},
    "children": {"q": "parent:parent-7"},
    "children, oldest first": {"q": "parent:parent-7", "o": "1"},
    "children of a status": {"q": "parent:parent-7 status:completed"},
    "children of a status that others have": {"q": "parent:parent-7 status:dead_letter,queued"},
    "children of a type and with an error": {"q": "parent:parent-7 type:type-7 error:fire"},
    "children of what is not there": {"q": "parent:nonsense status:dead_letter"},
}


def statements(queue, look):
    with CaptureQueriesContext(connections[queue.alias]) as queries:
        assert look().status_code == 200
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
    """Count the rows that Postgres takes from the table or an index for a statement."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}")
        todo, rows = [cursor.fetchone()[0][0]["Plan"]], 0
    while todo:
        node = todo.pop()
        todo += node.get("Plans", [])
        if "Scan" in node["Node Type"]:
            rows += (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
    return rows


def costly(queue, looks):
    """The statements that visit more than a few rows, with how many."""
    connection = connections[queue.alias]
    costs, most = (steps, FEW_STEPS) if connection.vendor == "sqlite" else (visited, FEW_ROWS)
    found = {
        (name, statement): costs(connection, statement)
        for name, look in looks.items()
        for statement in statements(queue, look)
    }
    assert len({name for name, _statement in found}) == len(looks)
    return {key: cost for key, cost in found.items() if cost > most}


def test_no_list_visits_more_than_a_few_of_many_rows(crowd, operator):
    looks = {name: (lambda query=query: operator.list(**query)) for name, query in SEARCHES.items()}
    looks |= {f"{name}, of dead letters": lambda: operator.list("deadletter") for name in ("everything",)}
    looks["dead letters by error"] = lambda: operator.list("deadletter", q="error:fire queue:default")
    assert costly(crowd, looks) == {}


def test_the_test_would_see_a_walk(crowd):
    def walk():
        rows = Job.objects.using(crowd.alias).filter(type="nobody").order_by("-pk")
        assert list(rows[:1]) == []
        return type("Answer", (), {"status_code": 200})

    assert costly(crowd, {"a walk": walk})
