"""Tests of claims among very many groups of other jobs, whose scan isn't repeated for each claim."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext

from jobqueue.backends.sql.claims import crowd
from jobqueue.records import Scope
from jobqueue.testing.contract.harness import draft, finish, put, put_all, request, take, take_one
from tests.worker.harness import until

MANY = 1_500

FILL = {
    "sqlite": "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {many}) ",
    "postgresql": "WITH n(n) AS (SELECT generate_series(1, {many})) ",
}
INSERT = """
INSERT INTO job_queue (id, type, queue, priority, payload, scheduled_at, created_at, updated_at) {fill}
SELECT 'foreign-' || n, 'foreign_' || n, 'queue_' || n, 1, '{{}}',
       '2020-01-01T00:00:00Z', '2020-01-01T00:00:00Z', '2020-01-01T00:00:00Z' FROM n
"""


@pytest.fixture
def foreign_groups(queue, alias):
    """Many groups of jobs at the head of the order whose types nobody knows."""
    connection = connections[alias]
    fill = FILL[connection.vendor].format(many=MANY)
    insert = INSERT.format(fill=fill)
    if connection.vendor == "sqlite":
        insert = fill + insert.replace(fill, "")
    with connection.cursor() as cursor:
        cursor.execute(insert)


@contextmanager
def counted_walks(alias, walks):
    """Count the steps that claims make through groups."""
    connection = connections[alias]
    if connection.vendor == "sqlite":
        connection.ensure_connection()
        connection.connection.set_trace_callback(
            lambda text: walks.append(text) if ", priority) >= (" in text else None
        )
        yield
        connection.connection.set_trace_callback(None)
        return
    with CaptureQueriesContext(connection) as captured:
        yield
    walks += [one["sql"] for one in captured.captured_queries if "UNION ALL\n    SELECT n.*" in one["sql"]]


def test_claims_behind_very_many_groups_go_by_the_last_walk(queue, alias, foreign_groups, monkeypatch):
    monkeypatch.setattr(crowd, "REST_FOR_EACH", 1.0)
    put_all(queue, *(draft(queue=f"own_{number % 3}") for number in range(30)))
    first = take_one(queue)
    assert take_one(queue).id > first.id
    walks = []
    with counted_walks(alias, walks):
        found = [take_one(queue).id for _ in range(20)]
    assert found == sorted(found)
    assert walks == []


def test_a_job_in_a_group_that_is_new_is_found_by_the_next_walk(queue, foreign_groups, monkeypatch):
    put(queue)
    assert finish(queue, take_one(queue))
    assert take(queue) == []
    new = put(queue, queue="new")
    waits = queue.cycle("me", (), request()).next_due
    assert waits is not None
    assert waits.total_seconds() <= crowd.REST_FOR_EACH * (MANY + 2)
    now = crowd.SYSTEM.monotonic() + waits.total_seconds() + 0.001

    class Later:
        @staticmethod
        def monotonic():
            return now

    monkeypatch.setattr(crowd, "SYSTEM", Later)
    assert take_one(queue).id == new


def test_a_worker_of_few_queues_finds_what_is_new_in_them_at_once(queue, foreign_groups):
    put(queue, queue="own")
    wanted = replace(request(1), queues=frozenset({"own", "other"}))
    for _ in range(3):
        queue.cycle("me", (), wanted)
    new = put(queue, queue="other", priority=9)
    assert [claim.id for claim in queue.cycle("me", (), wanted).claims] == [new]


def test_a_pause_holds_for_groups_that_were_found_before_it(queue, foreign_groups):
    put_all(queue, *(draft(queue="own") for _ in range(5)))
    for _ in range(3):
        take_one(queue)
    queue.operator.pause(Scope.QUEUE, "own")
    assert take(queue) == []
    queue.operator.resume(Scope.QUEUE, "own")
    assert len(take(queue, 2)) == 2


def test_the_plain_way_comes_back_when_the_crowd_has_gone(queue, alias, foreign_groups, monkeypatch):
    monkeypatch.setattr(crowd, "REST_FOR_EACH", 0.0)
    put_all(queue, *(draft() for _ in range(5)))
    take_one(queue)
    with connections[alias].cursor() as cursor:
        cursor.execute("DELETE FROM job_queue WHERE id LIKE 'foreign-%%'", [])
    take_one(queue)
    take_one(queue)
    assert not queue._crowd.is_met


def test_the_order_holds_among_more_open_groups_than_are_wanted(queue, foreign_groups):
    ids = put_all(queue, *(draft(queue=f"own_{number % 40}", priority=1 + number % 2) for number in range(120)))
    in_order = [*ids[0::2], *ids[1::2]]
    taken = []
    while claims := take(queue, 7):
        taken += [claim.id for claim in claims]
    assert taken == in_order


def test_what_becomes_due_behind_many_groups_of_later_is_found(queue, foreign_groups):
    put_all(queue, *(draft(queue=f"later_{number}", priority=1, delay=timedelta(days=1)) for number in range(1_200)))
    soon = put(queue, queue="soon", delay=timedelta(milliseconds=1))
    due = put(queue, queue="due", priority=9)
    taken = []
    until(lambda: taken.extend(claim.id for claim in take(queue, 2)) or len(taken) == 2, what="both")
    assert sorted(taken) == sorted([soon, due])


def test_a_cycle_that_goes_by_the_last_walk_says_so(queue, foreign_groups, monkeypatch):
    monkeypatch.setattr(crowd, "REST_FOR_EACH", 1.0)
    assert [take(queue) for _ in range(3)] == [[], [], []]
    put(queue, queue="new")
    cycle = queue.cycle("me", (), request())
    assert (cycle.claims, cycle.is_partial) == ((), True)
