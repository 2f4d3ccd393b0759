"""Tests of what retention does in the databases: plans, orders and errors beside jobs, and the space of files."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connections

from jobqueue.backends.sqlite.ports import retention as sqlite_retention
from jobqueue.backends.sqlite.ports.retention import LOG_KEPT
from jobqueue.backends.sqlite.session import SqliteSession
from jobqueue.ids import new_id
from jobqueue.models import KnownError, Order, OrderedJob
from jobqueue.testing.contract.harness import bury, finish, put, take_one
from tests.conftest import ON_SQLITE

DAY = timedelta(days=1)


def explained(alias, statement):
    with connections[alias].cursor() as cursor:
        prefix = "EXPLAIN QUERY PLAN" if connections[alias].vendor == "sqlite" else "EXPLAIN"
        cursor.execute(f"{prefix} {statement}")
        return "\n".join(str(row[-1]) for row in cursor.fetchall())


def test_a_walk_reads_no_more_than_it_returns(queue, alias):
    """On tables that were never analysed, too."""
    key = queue.retention.key
    columns = f"{key}, id, type, queue, status, coalesce(completed_at, updated_at)"
    after = "900" if key == "rowid" else "'01'"
    with queue.session.index_order(500):
        plan = explained(alias, f"SELECT {columns} FROM job_queue WHERE {key} < {after} ORDER BY {key} DESC LIMIT 500")
    assert "SORT" not in plan.upper()
    assert "TEMP B-TREE" not in plan
    assert "rowid<?" in plan if key == "rowid" else "Index Scan Backward using job_queue_pkey" in plan


def order(queue, state, days):
    made = Order(id=new_id(), state=state, verb="retry", user_id="1", instruction={}, account={})
    made.asked_at = made.ended_at = queue.now() - days * DAY
    made.save(using=queue.alias, force_insert=True)
    OrderedJob.objects.using(queue.alias).create(order=made, job_id="7")
    return made.pk


def test_orders_that_ended_long_ago_go_with_their_jobs(queue):
    kept = [order(queue, "done", 89), order(queue, "running", 91), order(queue, "asked", 91)]
    for state in ("done", "stopped"):
        order(queue, state, 91)
    while queue.retention.prune_beside(90 * DAY, DAY):
        pass
    assert {one.pk for one in Order.objects.using(queue.alias)} == {*kept}
    assert {one.order_id for one in OrderedJob.objects.using(queue.alias)} == {*kept}


def test_an_error_is_remembered_while_a_dead_letter_has_it_and_long_after(queue):
    put(queue)
    claim = take_one(queue)
    bury(queue, claim)
    KnownError.objects.using(queue.alias).all().delete()
    old, young = queue.now() - 9 * DAY, queue.now() - DAY
    fingerprint = queue.jobs.get(claim.id).error_fingerprint or "used"
    connections[queue.alias].cursor().execute("UPDATE job_queue SET error_fingerprint = %s", [fingerprint])
    for name, first, retried in [
        (fingerprint, old, None),
        ("young", young, None),
        ("retried lately", old, young),
        ("retried", old, old),
        ("unused", old, None),
    ]:
        KnownError.objects.using(queue.alias).create(fingerprint=name, first_at=first, retried_at=retried)
    assert queue.retention.prune_beside(DAY, 2 * DAY) == 2
    left = set(KnownError.objects.using(queue.alias).values_list("fingerprint", flat=True))
    assert left == {fingerprint, "young", "retried lately"}


@ON_SQLITE
def test_an_id_that_is_not_utf_8_stops_no_walk(queue):
    ids = [put(queue) for _ in range(3)]
    for _ in ids:
        finish(queue, take_one(queue))
    with connections[queue.alias].cursor() as cursor:
        cursor.execute("UPDATE job_queue SET id = CAST(x'e9e9' AS TEXT) WHERE id = %s", [ids[1]])
    found, place = [], None
    for _ in range(3):
        some, place = queue.retention.walk(place, 1)
        found += some
    assert queue.retention.walk(place, 1) == ([], None)
    assert len(queue.retention.prune(found)) == 3


@ON_SQLITE
def test_the_log_is_cut_while_nobody_uses_it(queue):
    path = Path(connections[queue.alias].settings_dict["NAME"])
    log = path.with_name(f"{path.name}-wal")
    while not log.exists() or log.stat().st_size <= LOG_KEPT:
        put(queue, payload='{"text": "%s"}' % ("x" * 200_000))
    with closing(sqlite3.connect(path)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM job_queue").fetchall()
        assert queue.retention.compact() is False
    assert queue.retention.compact() is False
    assert log.stat().st_size == 0


@pytest.mark.sqlite
def test_a_file_that_allows_it_shrinks_bit_by_bit(tmp_path, monkeypatch):
    for name, value in {"PAGES_KEPT": 10, "PAGES_AT_ONCE": 100, "LOG_KEPT": 0}.items():
        monkeypatch.setattr(sqlite_retention, name, value)
    path = tmp_path / "own.sqlite3"
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.execute("PRAGMA auto_vacuum = INCREMENTAL")
        file.execute("CREATE TABLE filled (text)")
        file.executemany("INSERT INTO filled VALUES (?)", [("x" * 4_000,)] * 500)
        file.execute("DELETE FROM filled")
    monkeypatch.setitem(connections.settings, "own", connections.settings["default"] | {"NAME": str(path)})
    largest, steps = path.stat().st_size, 0
    while sqlite_retention.SqliteRetention(SqliteSession("own")).compact():
        steps += 1
    assert steps == 5
    assert path.stat().st_size < largest / 10
    connections["own"].close()
    del connections["own"]
