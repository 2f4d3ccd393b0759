"""Tests of the wait for SQLite's write lock: its limit, and errors that name it."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from django.db import connections, transaction
from django.db.utils import OperationalError

from jobqueue.clock import SYSTEM, to_text
from jobqueue.errors import DatabaseBusy
from jobqueue.ids import new_id
from jobqueue.models import Job
from jobqueue.policy.leases import settle_overdue
from jobqueue.policy.settling import completed
from jobqueue.records import Scope
from jobqueue.testing.contract.harness import LEASE, draft, failing, put, put_all, request, take
from tests.conftest import make_sql_backend

pytestmark = pytest.mark.sqlite

INSERT = """
INSERT INTO job_queue (id, type, payload, scheduled_at, created_at, updated_at) VALUES (?, 'greet', '{}', ?, ?, ?)
"""


@pytest.fixture
def connection(databases, monkeypatch):
    """The application's connection, of settings that let SQLite itself wait for ten milliseconds only."""
    connection = connections["default"]
    connection.close()
    monkeypatch.setitem(connection.settings_dict["OPTIONS"], "timeout", 0.01)
    connection.ensure_connection()  # which sets its transactions' mode
    yield connection
    connection.close()


@pytest.fixture
def backend(connection):
    return make_sql_backend("default", None)


class Writer:
    """Another writer, with a connection of its own."""

    def __init__(self):
        name = connections["default"].settings_dict["NAME"]
        self.driver = sqlite3.connect(name, isolation_level=None, check_same_thread=False)
        self.released = None

    def write(self):
        now = to_text(SYSTEM.now())
        self.driver.execute(INSERT, (new_id(), now, now, now))

    @contextmanager
    def holding(self, seconds=None):
        """Hold the write lock: for some seconds, or until the block ends."""
        self.driver.execute("BEGIN IMMEDIATE")
        self.write()
        timer = threading.Timer(seconds, self.release) if seconds else None
        if timer:
            timer.start()
        try:
            yield
        finally:
            if timer:
                timer.join()
            else:
                self.release()

    def release(self):
        self.released = SYSTEM.monotonic()
        self.driver.execute("COMMIT")


@pytest.fixture
def writer(connection):
    writer = Writer()
    with closing(writer.driver):
        yield writer


def busy_timeout(connection):
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout")
        return cursor.fetchone()[0]


# Waiting


def test_an_enqueue_outside_a_transaction_waits_for_the_lock(backend, writer):
    with writer.holding(0.5):
        job_id = put(backend)
        enqueued = SYSTEM.monotonic()
    assert backend.jobs.get(job_id) is not None
    assert 0 <= enqueued - writer.released < 2


def a_cycle(backend, claims):
    assert backend.cycle("me", [completed(claims[0])], request()).refused == ()


def a_failure(backend, claims):
    assert backend.cycle("me", [failing(claims[0])]).refused == ()


VERBS = {
    "enqueue many": lambda backend, claims: put_all(backend, draft(), draft()),
    "cycle": a_cycle,
    "settle with history": a_failure,
    "extend": lambda backend, claims: backend.extend(claims, LEASE),
    "sweep": lambda backend, claims: backend.sweep(settle_overdue),
    "cancel": lambda backend, claims: backend.operator.cancel([claims[0].id]),
    "retry": lambda backend, claims: backend.operator.retry([claims[0].id]),
    "purge": lambda backend, claims: backend.operator.purge([claims[0].id]),
    "pause": lambda backend, claims: backend.operator.pause(Scope.QUEUE, "mail"),
    "resume": lambda backend, claims: backend.operator.resume(Scope.QUEUE, "mail"),
}


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_waits_for_the_lock(backend, writer, verb):
    put_all(backend, draft(), draft())
    claims = take(backend)
    with writer.holding(0.1):
        VERBS[verb](backend, claims)
        done = SYSTEM.monotonic()
    assert done >= writer.released


def test_reading_waits_for_nobody(backend, writer):
    job_id = put(backend)
    with writer.holding():
        assert backend.jobs.get(job_id) is not None
        assert [one.queued for one in backend.jobs.stats()] == [1]
        assert backend.operator.pauses() == []


def test_an_idle_turn_waits_for_nobody(backend, writer):
    with writer.holding():
        assert backend.cycle("me", (), request()).claims == ()


def test_the_connection_waits_afterwards_as_its_settings_say(backend, connection, writer):
    assert busy_timeout(connection) == 10
    with writer.holding(0.1):
        put(backend)
    assert busy_timeout(connection) == 10


def test_the_connection_waits_as_its_settings_say_after_a_failure_too(backend, connection, writer, settings):
    settings.JOBQUEUE = {"BUSY_TIMEOUT": 0.05}
    with writer.holding(), pytest.raises(DatabaseBusy):
        put(backend)
    assert busy_timeout(connection) == 10


def test_a_connection_opened_by_the_enqueue_waits_as_its_settings_say(backend, connection):
    connection.close()
    put(backend)
    assert busy_timeout(connection) == 10


def test_a_time_to_wait_that_the_connection_was_given_later_comes_back(backend, connection):
    connection.ensure_connection()
    connection.connection.execute("PRAGMA busy_timeout = 20000")
    backend.enqueue([draft()])
    assert connection.connection.execute("PRAGMA busy_timeout").fetchone() == (20_000,)


def test_settling_in_a_deferred_transaction_that_has_read_names_the_setting(backend, deferred, writer):
    put(backend)
    (claim,) = take(backend, 1)
    with pytest.raises(DatabaseBusy, match="transaction_mode"), transaction.atomic():
        assert Job.objects.count() == 1
        writer.write()
        backend.settle_in_transaction(completed(claim))


def test_the_mode_of_transactions_is_as_before(backend, connection, monkeypatch):
    monkeypatch.setattr(connection, "transaction_mode", "DEFERRED")
    put_all(backend, draft(), draft())
    take(backend)
    assert connection.transaction_mode == "DEFERRED"


# The limit


def test_a_wait_beyond_the_limit_names_the_setting(backend, writer, settings):
    settings.JOBQUEUE = {"BUSY_TIMEOUT": 0.2}
    started = SYSTEM.monotonic()
    with (
        writer.holding(),
        pytest.raises(DatabaseBusy, match=r"\"default\" was locked for 0\.2 seconds .* JOBQUEUE\['BUSY_TIMEOUT'\]"),
    ):
        put(backend)
    assert 0.2 <= SYSTEM.monotonic() - started < 2
    assert not Job.objects.filter(type="resize").exists()


def test_a_wait_beyond_the_limit_leaves_nothing_of_many(backend, writer, settings):
    settings.JOBQUEUE = {"BUSY_TIMEOUT": 0.05}
    with writer.holding(), pytest.raises(DatabaseBusy):
        put_all(backend, draft(), draft())
    assert not Job.objects.filter(type="resize").exists()


def test_who_catches_djangos_error_catches_ours(backend, writer, settings):
    settings.JOBQUEUE = {"BUSY_TIMEOUT": 0.05}
    with writer.holding(), pytest.raises(OperationalError):
        put(backend)


# Inside the caller's transaction


def test_an_enqueue_in_an_immediate_transaction_has_the_lock_already(backend, connection):
    with transaction.atomic():
        assert Job.objects.count() == 0
        put(backend)
        other = Writer()
        with closing(other.driver), pytest.raises(sqlite3.OperationalError, match="locked"):
            other.driver.execute("PRAGMA busy_timeout = 0")
            other.write()
    assert Job.objects.count() == 1


@pytest.fixture
def deferred(connection, monkeypatch):
    """Transactions that begin as SQLite's do where nobody set their mode."""
    monkeypatch.setattr(connection, "transaction_mode", None)
    return connection


def test_a_deferred_transaction_that_has_read_is_refused_at_once_with_the_setting(backend, deferred, writer):
    started = SYSTEM.monotonic()
    with (
        pytest.raises(DatabaseBusy, match=r"DATABASES\['default'\]\['OPTIONS'\]\['transaction_mode'\] = 'IMMEDIATE'"),
        transaction.atomic(),
    ):
        assert Job.objects.count() == 0
        writer.write()
        put(backend)
    assert SYSTEM.monotonic() - started < 1
    assert not Job.objects.filter(type="resize").exists()


def test_a_refused_bulk_in_a_deferred_transaction_stores_nothing(backend, deferred, writer):
    with pytest.raises(DatabaseBusy, match="transaction_mode"), transaction.atomic():
        assert Job.objects.count() == 0
        writer.write()
        put_all(backend, draft(), draft())
    assert not Job.objects.filter(type="resize").exists()


def test_a_deferred_transaction_works_while_nobody_else_writes(backend, deferred):
    with transaction.atomic():
        assert Job.objects.count() == 0
        put(backend)
    assert Job.objects.count() == 1


def test_outside_a_transaction_the_mode_does_not_matter(backend, deferred, writer):
    with writer.holding(0.1):
        put_all(backend, draft(), draft())
    assert Job.objects.filter(type="resize").count() == 2


# Real processes

SET_UP = """
import sys
import django
from django.conf import settings

settings.DATABASES["default"]["NAME"] = sys.argv[1]
settings.DATABASES["default"]["OPTIONS"]["timeout"] = 0.01
django.setup()
from django.db import connection
import jobqueue
from jobqueue.backends import current

connection.ensure_connection()
print("ready", flush=True)
sys.stdin.readline()
"""
PRODUCER = """
for number in range(int(sys.argv[2])):
    jobqueue.enqueue("anything", {"number": number})
    if number % 20 == 0:
        connection.close()  # as a web request does at its end
"""
WORKER = """
from jobqueue.policy.settling import completed
from jobqueue.records import ClaimRequest

request = ClaimRequest(limit=50, types=frozenset({"anything"}))
seen, claims = set(), ()
while len(seen) < int(sys.argv[2]) or claims:
    cycle = current().cycle("me", [completed(claim) for claim in claims], request)
    assert cycle.refused == ()
    claims = cycle.claims
    seen.update(claim.id for claim in claims)
print(len(seen))
"""


def start(code, *arguments):
    name = connections["default"].settings_dict["NAME"]
    return subprocess.Popen(
        [sys.executable, "-c", SET_UP + code, str(name), *map(str, arguments)],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_four_producers_and_a_worker_never_see_a_locked_database(databases):
    producers, enqueued = 4, 200
    processes = [start(PRODUCER, enqueued) for _ in range(producers)] + [start(WORKER, producers * enqueued)]
    try:
        assert [process.stdout.readline() for process in processes] == ["ready\n"] * len(processes)
        for process in processes:
            process.stdin.write("go\n")
            process.stdin.flush()
        ends = [process.communicate(timeout=60) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert [(process.returncode, error) for process, (_out, error) in zip(processes, ends, strict=True)] == [
        (0, "")
    ] * len(processes)
    assert ends[-1][0] == f"{producers * enqueued}\n"
    assert Job.objects.filter(status="completed").count() == producers * enqueued
