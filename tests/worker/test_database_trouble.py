"""Tests of a database that is down, read-only, drops connections or is locked: the worker waits and goes on."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.db import connections

from jobqueue.clock import SYSTEM
from tests.app.worker_jobs import hold, hold_once, note_atomic, tick
from tests.app.worker_jobs_b import nap, nap_many
from tests.app.worker_jobs_broken import write
from tests.conftest import ON_SQLITE, TABLES
from tests.worker.harness import until, until_at_rest

ON_POSTGRES = pytest.mark.parametrize("alias", [pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True)
ON_A_SERVER_OF_ITS_OWN = pytest.mark.parametrize(
    "alias", [pytest.param("private", marks=pytest.mark.postgres)], indirect=True
)


def do(alias, statement, *values):
    with connections[alias].cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchall() if cursor.description else []


def end_sessions(alias):
    """End every connection to the test's database but the test's own."""
    others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    return len(do(alias, f"SELECT pg_terminate_backend(pid) {others}"))


def each_ran_once(ledger, receipts):
    runs = ledger.runs()
    assert sorted(run.job for run in runs) == sorted(one.id for one in receipts)
    return all(run.ended for run in runs)


@ON_POSTGRES
def test_sessions_that_end_again_and_again_cost_no_job_and_no_second_run(start_worker, jobs, ledger, alias):
    receipts = nap_many(80, seconds=0.05)
    worker = start_worker("--concurrency", "4")
    until(lambda: ledger.entries("start"))
    ended = 0
    for _ in range(12):
        ended += end_sessions(alias)
        time.sleep(0.08)
    jobs.until("completed", *receipts)
    assert ended >= 5
    assert each_ran_once(ledger, receipts)
    assert [jobs.history(one) for one in receipts] == [[]] * 80
    assert "out of reach" in worker.output
    assert "is back" in worker.output
    assert "Traceback" not in worker.output
    assert worker.stop() == 0
    assert set(jobs.statuses(*receipts)) == {"completed"}


@ON_POSTGRES
def test_a_database_that_is_read_only_for_a_while_is_waited_for(start_worker, jobs, ledger, alias):
    finished, others = hold.enqueue(gate="go"), nap_many(20)
    worker = start_worker("--concurrency", "1", "--lease", "10")
    until(lambda: ledger.started(finished.id))
    name = connections[alias].settings_dict["NAME"]
    do(alias, f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    try:
        end_sessions(alias)
        ledger.open_gate("go")
        worker.until_said("out of reach", 5)
        until(lambda: ledger.entries("end"))
        time.sleep(1)  # nothing to wait for: it is to stay as it is
        assert jobs.get(finished).status == "in_progress"
        assert [run.job for run in ledger.runs()] == [finished.id]
    finally:
        do(alias, f'ALTER DATABASE "{name}" RESET default_transaction_read_only')
    jobs.until("completed", finished, *others)
    assert each_ran_once(ledger, [finished, *others])
    assert worker.output.count("is out of reach") <= 5
    assert worker.stop() == 0


# A server of its own, for the machine's must not be stopped


class Server:
    """A private Postgres that a test may stop as it likes."""

    def __init__(self, folder, programs):
        self.folder = folder
        self._programs = programs
        self._as = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        if self._as:
            shutil.chown(folder, "postgres")
        self._run("initdb", "-U", "jobqueue", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")

    def _run(self, program, *words):
        subprocess.run(
            [*self._as, str(self._programs / program), "-D", str(self.folder / "data"), *words],
            cwd=self.folder,
            check=True,
            stdout=subprocess.DEVNULL,
            timeout=60,
        )

    def start(self):
        options = f"-k '{self.folder}' -c listen_addresses='' -c port=5432 -c fsync=off -c max_connections=30"
        self._run("pg_ctl", "-l", str(self.folder / "log"), "-w", "-s", "-o", options, "start")

    def stop(self, manner="immediate"):
        self._run("pg_ctl", "-m", manner, "-w", "-s", "stop")


def _programs():
    found = [Path(shutil.which("initdb") or "/").resolve().parent, *Path("/usr/lib/postgresql").glob("*/bin")]
    return next((one for one in found if (one / "initdb").exists() and (one / "pg_ctl").exists()), None)


@pytest.fixture(scope="module")
def server():
    """A running server of this module's own; it has no port, and its socket is in a folder nobody else may enter."""
    programs = _programs()
    if programs is None:
        why = "NO RESTART OF POSTGRES WAS TESTED: neither initdb nor pg_ctl is on this machine"
        required = "postgres" in os.environ.get("JOBQUEUE_TEST_REQUIRE", "").split(",")
        (pytest.fail if required else pytest.skip)(why)
    folder = Path(tempfile.mkdtemp(prefix="jobqueue-pg-", dir="/tmp"))  # a socket's path must be short
    made = Server(folder, programs)
    made.start()
    yield made
    with contextlib.suppress(subprocess.CalledProcessError):
        made.stop()
    shutil.rmtree(folder)


@pytest.fixture
def private(server, databases):
    """The alias of a migrated database on that server."""
    connections.settings["private"] = connections["postgres"].settings_dict | {
        "HOST": str(server.folder),
        "PORT": "5432",
        "USER": "jobqueue",
        "PASSWORD": "",
        "NAME": "postgres",
    }
    call_command("migrate", "jobqueue", database="private", verbosity=0)
    for table in TABLES:
        table.objects.using("private").all().delete()
    yield "private"
    connections["private"].close()
    del connections["private"], connections.settings["private"]


@pytest.fixture
def alias(request):
    """The database that a test names."""
    request.getfixturevalue("databases")
    return request.getfixturevalue("private") if request.param == "private" else request.param


@ON_A_SERVER_OF_ITS_OWN
@pytest.mark.parametrize("manner", ["immediate", "fast"])
def test_a_server_that_is_restarted_finds_the_worker_where_it_was(start_worker, server, jobs, ledger, manner):
    finished, running, others = hold.enqueue(gate="first"), hold.enqueue(gate="second"), nap_many(20)
    worker = start_worker("--concurrency", "2", "--lease", "10")
    until(lambda: ledger.started(finished.id, running.id))
    connections["private"].close()
    server.stop(manner)
    try:
        ledger.open_gate("first")
        until(lambda: ledger.entries("end", finished.id))
        worker.until_said("out of reach", 5)
    finally:
        server.start()
    jobs.until("completed", finished)
    assert jobs.get(running).status == "in_progress"
    ledger.open_gate("second")
    jobs.until("completed", finished, running, *others)
    assert each_ran_once(ledger, [finished, running, *others])
    late = nap.enqueue()
    jobs.until("completed", late, seconds=3)
    assert worker.stop() == 0
    assert "Traceback" not in worker.output


@ON_A_SERVER_OF_ITS_OWN
def test_a_job_whose_lease_cannot_be_renewed_is_stopped_before_another_worker_may_have_it(
    start_worker, server, jobs, ledger
):
    receipt = tick.enqueue(gate="go")
    first = start_worker("--lease", "2", "--stop-grace", "0.2")
    until(lambda: ledger.started(receipt.id))
    connections["private"].close()
    server.stop()
    stopped_at = SYSTEM.monotonic()
    try:
        until(lambda: quiet_for(ledger, 0.3), 5, "an end of the first run")
        assert SYSTEM.monotonic() - stopped_at < 2.4
    finally:
        server.start()
    start_worker("--lease", "2")
    until(lambda: len(ledger.runs()) == 2)
    ledger.open_gate("go")
    [done] = jobs.until("completed", receipt)
    assert ledger.overlaps() == []
    assert done.result == "fence 2"
    assert jobs.endings(receipt) in (["released"], ["lease_lost"])
    assert first.stop() == 0


def quiet_for(ledger, seconds):
    """Whether no handler has shown a sign of life for so long."""
    return SYSTEM.monotonic() - max(one["at"] for one in ledger.entries()) > seconds


@ON_A_SERVER_OF_ITS_OWN
def test_a_worker_that_must_end_while_the_database_is_away_says_what_it_could_not_store(
    start_worker, server, jobs, ledger
):
    finished, interrupted = hold.enqueue(gate="go"), hold.enqueue(gate="never")
    worker = start_worker("--shutdown-grace", "1", "--lease", "3")
    until(lambda: ledger.started(finished.id, interrupted.id))
    connections["private"].close()
    server.stop()
    try:
        ledger.open_gate("go")
        worker.until_said("out of reach", 5)
        began = SYSTEM.monotonic()
        assert worker.stop() == 1
        assert SYSTEM.monotonic() - began < 5
        assert "CRITICAL 2 jobs could not be settled or given back" in worker.output
        assert "Traceback" not in worker.output
        until(lambda: not list(worker.relatives()), 3, "the end of its processes")
    finally:
        server.start()
    assert jobs.statuses(finished, interrupted) == ["in_progress", "in_progress"]


@ON_A_SERVER_OF_ITS_OWN
def test_a_worker_that_holds_nothing_ends_at_once_while_the_database_is_away(start_worker, server, jobs):
    worker = start_worker()
    jobs.until("completed", nap.enqueue())
    connections["private"].close()
    server.stop()
    try:
        worker.until_said("out of reach", 5)
        assert worker.stop(3) == 0
    finally:
        server.start()
    assert "Traceback" not in worker.output


# What an atomic handler needs before it begins

SEVERAL = 12


def given_back_until(jobs, receipts, restore):
    """Wait until each has been given back more often than it has attempts, restore the database, and see all end."""
    until(lambda: all(len(jobs.history(one)) >= 3 for one in receipts), 60, "three attempts of each that did not begin")
    restore()
    for row in jobs.until("completed", *receipts, seconds=60):
        assert (row.attempts, row.crash_count) == (1, 0)
        assert set(jobs.endings(row.id)) == {"released"}
        assert row.fence <= 1 + 8, "it was tried again and again without a pause"


@ON_A_SERVER_OF_ITS_OWN
def test_an_atomic_job_that_gets_no_connection_does_not_pay_with_an_attempt(start_worker, server, jobs, ledger, alias):
    worker = start_worker("--concurrency", "4")
    until(lambda: do(alias, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%%LISTEN%%'")[0][0] > 1)
    psycopg = pytest.importorskip("psycopg")
    eaters = []
    with contextlib.suppress(psycopg.OperationalError):
        while True:
            eaters.append(psycopg.connect(host=str(server.folder), user="jobqueue", dbname="postgres"))
    receipts = [note_atomic.enqueue() for _ in range(SEVERAL)]

    def restore():
        for one in eaters:
            one.close()

    given_back_until(jobs, receipts, restore)
    message = jobs.history(receipts[0])[0].message
    assert "did not begin" in message
    assert "too many clients" in message
    assert each_ran_once(ledger, receipts)
    assert "Traceback" not in worker.output
    assert worker.stop() == 0


@ON_SQLITE
def test_an_atomic_job_whose_file_can_only_be_read_does_not_pay_with_an_attempt(start_worker, jobs, ledger, alias):
    """The supervisor has had the file open since before, and may write."""
    worker = start_worker("--concurrency", "4")
    until_at_rest(worker.pid)
    do(alias, "SELECT count(*) FROM job_queue")  # so has the test
    with contextlib.ExitStack() as stack:
        stack.enter_context(read_only(Path(database_file(alias))))
        receipts = [note_atomic.enqueue() for _ in range(SEVERAL)]
        given_back_until(jobs, receipts, stack.close)
    assert "readonly database" in jobs.history(receipts[0])[0].message
    assert each_ran_once(ledger, receipts)
    assert "Traceback" not in worker.output
    assert worker.stop() == 0


@ON_SQLITE
def test_a_worker_that_drains_waits_for_what_did_not_begin(start_worker, jobs, ledger, alias):
    keeping_up = hold.enqueue(gate="go")
    worker = start_worker("--drain", "--concurrency", "4")
    until(lambda: ledger.entries("start"))
    with contextlib.ExitStack() as stack:
        stack.enter_context(read_only(Path(database_file(alias))))
        receipts = [note_atomic.enqueue() for _ in range(3)]

        def restore():
            ledger.open_gate("go")
            jobs.until("completed", keeping_up)
            stack.close()

        given_back_until(jobs, receipts, restore)
    assert worker.wait() == 0


@ON_SQLITE
def test_a_connection_to_a_file_that_could_only_be_read_is_not_kept(start_worker, jobs, ledger, alias):
    worker = start_worker("--concurrency", "1")
    until_at_rest(worker.pid)
    do(alias, "SELECT count(*) FROM job_queue")
    with read_only(Path(database_file(alias))):
        [dead] = jobs.until("dead_letter", write.enqueue())
    assert "readonly database" in dead.error
    jobs.until("completed", write.enqueue())
    Group.objects.using(alias).all().delete()
    assert len({one["pid"] for one in ledger.entries("start")}) == 1
    assert worker.stop() == 0


@contextlib.contextmanager
def read_only(file):
    """Have a file opened for reading alone from now on; who has it open already may write."""
    if os.geteuid():
        file.chmod(0o444)
        try:
            yield
        finally:
            file.chmod(0o644)
        return
    folder = str(file.parent)  # root is stopped by no mode
    bound = subprocess.run(["mount", "--bind", folder, folder], check=False, capture_output=True, text=True)
    if bound.returncode:
        pytest.skip(f"NO READ-ONLY FILE WAS TESTED: this root cannot mount ({bound.stderr.strip()})")
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", folder], check=True)
        yield
    finally:
        subprocess.run(["mount", "-o", "remount,rw,bind", folder], check=True)
        subprocess.run(["umount", "--lazy", folder], check=True)  # who opened the file meanwhile has it still


# SQLite's only write lock


def database_file(alias):
    return str(connections[alias].settings_dict["NAME"])


@ON_SQLITE
@pytest.mark.parametrize("patience", [30.0, 0.1], ids=["patient", "impatient"])
def test_another_writer_holds_the_lock_for_a_while(start_worker, jobs, ledger, alias, patience):
    finished, others = hold.enqueue(gate="go"), nap_many(10)
    worker = start_worker("--concurrency", "1", jobqueue={"BUSY_TIMEOUT": patience})
    until(lambda: ledger.started(finished.id))
    other = sqlite3.connect(database_file(alias), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    ledger.open_gate("go")
    until(lambda: ledger.entries("end", finished.id))
    time.sleep(1.5)  # the worker is to want the lock, and to be refused
    assert jobs.get(finished).status == "in_progress"
    other.execute("COMMIT")
    other.close()
    jobs.until("completed", finished, *others)
    assert each_ran_once(ledger, [finished, *others])
    assert "Traceback" not in worker.output
    assert worker.stop() == 0


@ON_SQLITE
def test_a_second_signal_is_obeyed_while_another_writer_holds_the_lock(start_worker, jobs, ledger, alias):
    running = hold.enqueue(gate="never")
    worker = start_worker()
    until(lambda: ledger.started(running.id))
    other = sqlite3.connect(database_file(alias), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    worker.process.terminate()
    worker.until_said("Stopping")
    worker.process.terminate()
    began = SYSTEM.monotonic()
    try:
        status = worker.wait(10)
    finally:
        other.execute("COMMIT")
        other.close()
    assert SYSTEM.monotonic() - began < 4
    assert status == 1
    assert "CRITICAL 1 jobs could not be settled or given back" in worker.output


@ON_SQLITE
def test_leases_that_cannot_be_renewed_for_a_lock_are_given_up_in_good_order(start_worker, jobs, ledger, alias):
    running = hold_once.enqueue(gate="never")
    start_worker("--lease", "2")
    until(lambda: ledger.started(running.id))
    other = sqlite3.connect(database_file(alias), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    time.sleep(3.5)  # longer than the lease
    other.execute("COMMIT")
    other.close()
    start_worker("--lease", "2")
    [done] = jobs.until("completed", running)
    assert ledger.overlaps() == []
    assert (done.attempts, done.result) == (2, "fence 2")
    assert jobs.endings(running) == ["lease_lost"]


@ON_SQLITE
def test_a_worker_that_shall_end_while_the_lock_is_held_loses_nothing(start_worker, jobs, ledger, alias):
    running = hold.enqueue(gate="go")
    worker = start_worker(jobqueue={"BUSY_TIMEOUT": 0.1})
    until(lambda: ledger.started(running.id))
    other = sqlite3.connect(database_file(alias), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    worker.process.terminate()
    worker.until_said("Stopping")
    ledger.open_gate("go")
    until(lambda: ledger.entries("end", running.id))
    time.sleep(0.5)
    other.execute("COMMIT")
    other.close()
    assert worker.wait() == 0
    assert jobs.get(running).status == "completed"
