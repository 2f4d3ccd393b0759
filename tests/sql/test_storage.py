"""Tests of what a database keeps that nobody needs: who holds an old snapshot, and how large the log is."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import timedelta

import psycopg
import pytest
from django.db import connections

from jobqueue.backends.sqlite.ports import storage
from jobqueue.observe.health import Reading, findings
from jobqueue.observe.health.storage import COSTLY_DEAD_ROWS, LARGE_LOG
from jobqueue.policy.leases import settle_overdue
from jobqueue.records import Scope
from jobqueue.records.storage import HolderKind, SnapshotHolder, Storage
from jobqueue.testing.clock import NOON
from jobqueue.testing.contract.harness import put
from tests.conftest import make_sql_backend
from tests.waking.test_silence import address
from tests.worker.harness import until


@pytest.fixture
def postgres(databases):
    yield make_sql_backend("postgres", None)
    connections["postgres"].close()


def holder_named(backend, name):
    return next((one for one in backend.storage.read().holders if one.name == name), None)


@pytest.mark.postgres
@pytest.mark.parametrize(
    "statement",
    [
        "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SELECT 1",
        "INSERT INTO job_queue_pause (scope, name, reason, paused_at) VALUES ('type', 'x', '', now())",
    ],
    ids=["a snapshot", "a forgotten BEGIN that wrote"],
)
def test_the_session_that_holds_a_snapshot_is_named_until_it_ends(postgres, statement):
    with psycopg.connect(address(), application_name="nightly report") as other:
        other.execute(statement)
        found = holder_named(postgres, "nightly report")
        assert (found.kind, found.pid, found.state) == (
            HolderKind.SESSION,
            other.info.backend_pid,
            "idle in transaction",
        )
        assert timedelta(0) <= postgres.now() - found.since < timedelta(minutes=1)
        other.rollback()
        assert holder_named(postgres, "nightly report") is None


@pytest.mark.postgres
def test_a_replication_slot_without_a_snapshot_is_not_named(postgres):
    assert all(one.kind is not HolderKind.SLOT for one in postgres.storage.read().holders)


@pytest.mark.sqlite
def test_the_size_of_the_log_is_that_of_its_file(databases):
    backend = make_sql_backend("default", None)
    with connections["default"].cursor() as cursor:
        cursor.execute("PRAGMA journal_mode")
        is_logged = cursor.fetchone()[0] == "wal"
    with closing(sqlite3.connect(connections["default"].settings_dict["NAME"])) as reader:
        reader.execute("SELECT count(*) FROM job_queue").fetchall()
        backend.operator.pause(Scope.TYPE, "x")
        backend.operator.resume(Scope.TYPE, "x")
        assert (backend.storage.read().log_size > 0) is is_logged


@pytest.mark.sqlite
def test_a_log_that_a_reader_made_large_is_cut_once_a_worker_writes_again(databases, monkeypatch):
    monkeypatch.setattr(storage, "LARGEST_LOG", 2**20)
    backend = make_sql_backend("default", None)
    with connections["default"].cursor() as cursor:
        cursor.execute("PRAGMA journal_mode")
        if cursor.fetchone()[0] != "wal":
            pytest.skip("the tests' database has no log")
    with closing(sqlite3.connect(connections["default"].settings_dict["NAME"], isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM job_queue").fetchall()
        until(lambda: (put(backend, payload=LARGE), backend.storage.read().log_size > 8 * 2**20)[1])
        reader.rollback()
    backend.sweep(settle_overdue)
    until(lambda: (put(backend, payload=LARGE), backend.storage.read().log_size < 6 * 2**20)[1])


LARGE = '{"text": "' + 100_000 * "x" + '"}'
HOLDER = SnapshotHolder(kind=HolderKind.SESSION, name="pg_dump", pid=7, state="active", since=NOON)


def found_in(storage, now):
    return findings(Reading(now=now, depths=(), pauses=(), workers=(), storage=storage))


@pytest.mark.parametrize(
    ("seen", "minutes", "causes"),
    [
        (Storage(holders=(HOLDER,), dead_rows=COSTLY_DEAD_ROWS), 5, ["snapshot_held"]),
        (Storage(holders=(HOLDER,), dead_rows=COSTLY_DEAD_ROWS), 0, []),
        (Storage(holders=(HOLDER,), dead_rows=5), 5, []),
        (Storage(dead_rows=10**9), 5, []),
        (Storage(holders=(SnapshotHolder(kind=HolderKind.SLOT, name="s"),), dead_rows=10**6), 0, ["snapshot_held"]),
        (Storage(log_size=LARGE_LOG), 0, ["log_large"]),
        (Storage(log_size=LARGE_LOG - 1), 0, []),
    ],
)
def test_only_what_is_old_and_costs_something_is_a_finding(seen, minutes, causes):
    found = found_in(seen, NOON + timedelta(minutes=minutes))
    assert [one.cause.value for one in found] == causes


def test_a_finding_names_the_holder():
    seen = Storage(holders=(HOLDER,), dead_rows=COSTLY_DEAD_ROWS)
    (found,) = found_in(seen, NOON + timedelta(minutes=5))
    assert (found.reason, found.since, found.dead_rows) == ("session, pg_dump, pid 7, active", NOON, COSTLY_DEAD_ROWS)
