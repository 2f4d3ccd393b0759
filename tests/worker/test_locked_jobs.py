"""Tests of a locked row of a running job: only that job waits to be stored."""

from __future__ import annotations

from contextlib import contextmanager

import psycopg
import pytest

from jobqueue.clock import SYSTEM
from jobqueue.testing.contract.harness import request
from jobqueue.worker.options import Plan, WorkerOptions
from jobqueue.worker.start import in_thread
from jobqueue.worker.supervisor.supervisor import Supervisor
from tests.app.worker_jobs import hold
from tests.app.worker_jobs_b import nap_many
from tests.app.worker_jobs_locks import advance
from tests.conftest import make_sql_backend
from tests.waking.test_silence import address
from tests.worker.harness import until

pytestmark = pytest.mark.parametrize("alias", [pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True)


@contextmanager
def locked(receipt, seconds=0.0):
    """Lock a job's row, and keep it locked for so long at least."""
    until_then = SYSTEM.monotonic() + seconds
    with psycopg.connect(address()) as other:
        other.execute("SELECT id FROM job_queue WHERE id = %s FOR UPDATE", [receipt.id])
        yield
        until(lambda: SYSTEM.monotonic() >= until_then)
        other.rollback()


def ran_once(jobs, ledger, *receipts):
    for row in jobs.until("completed", *receipts):
        assert (row.attempts, len(ledger.runs(row.id)), jobs.history(row.id)) == (1, 1, [])
    return True


def test_a_running_job_whose_row_is_locked_holds_up_nobody_else(start_worker, jobs, ledger):
    first, *others = [hold.enqueue(gate="go") for _ in range(4)]
    worker = start_worker("--concurrency", "4", "--lease", "5")
    until(lambda: ledger.started(first.id, *(one.id for one in others)))
    with locked(first, seconds=3):
        ledger.open_gate("go")
        jobs.until("completed", *others, seconds=2.5)
        later = nap_many(20, seconds=0.02)
        jobs.until("completed", *later, seconds=2.5)
        assert jobs.statuses(first) == ["in_progress"]
    assert ran_once(jobs, ledger, first, *others, *later)
    assert worker.stop() == 0
    assert "out of reach" not in worker.output
    assert worker.output.count(f"Job completed: hold {first.id}") == 1


def test_a_job_that_is_locked_while_it_tells_how_far_it_is_holds_up_nobody_else(start_worker, jobs, ledger):
    first, second = receipts = [advance.enqueue(gate="go") for _ in range(2)]
    worker = start_worker("--concurrency", "4", "--lease", "20")
    until(lambda: all(jobs.get(one).progress for one in receipts))
    with locked(first, seconds=3):
        before = [jobs.get(one).progress["percent"] for one in receipts]
        until(lambda: jobs.get(second).progress["percent"] > before[1], 2.5, "news of the other")
        later = nap_many(20, seconds=0.02)
        jobs.until("completed", *later, seconds=2.5)
        assert jobs.get(first).progress["percent"] == before[0]
    until(lambda: jobs.get(first).progress["percent"] > before[0], what="the news of the first")
    ledger.open_gate("go")
    assert ran_once(jobs, ledger, *receipts, *later)
    assert worker.stop() == 0
    assert "out of reach" not in worker.output


def test_a_worker_that_is_to_end_waits_for_the_lock_within_its_grace(start_worker, jobs, ledger):
    receipt = hold.enqueue(gate="go")
    worker = start_worker("--shutdown-grace", "20")
    until(lambda: ledger.started(receipt.id))
    with locked(receipt, seconds=1.5):
        ledger.open_gate("go")
        worker.process.terminate()
        worker.until_said("Stopping")
    assert worker.wait() == 0
    assert ran_once(jobs, ledger, receipt)


def test_a_worker_that_must_end_before_the_lock_does_says_what_it_could_not_store(start_worker, jobs, ledger):
    receipt = hold.enqueue(gate="go")
    worker = start_worker("--shutdown-grace", "0.5")
    until(lambda: ledger.started(receipt.id))
    with locked(receipt):
        ledger.open_gate("go")
        assert worker.stop(10) == 1
    assert "CRITICAL 1 jobs could not be settled or given back" in worker.output
    assert jobs.statuses(receipt) == ["in_progress"]


def test_a_drain_ends_when_what_was_locked_is_stored(start_worker, jobs, ledger):
    receipts = [hold.enqueue(gate="go") for _ in range(2)]
    worker = start_worker("--drain")
    until(lambda: ledger.started(*(one.id for one in receipts)))
    with locked(receipts[0], seconds=1.5):
        ledger.open_gate("go")
        jobs.until("completed", receipts[1], seconds=5)
    assert worker.wait() == 0
    assert ran_once(jobs, ledger, *receipts)


@pytest.fixture
def supervisor(databases):
    """A supervisor that has not begun, on a session of its own."""
    backend = make_sql_backend("postgres", None)
    backend.owns_session = True
    made = Supervisor(backend, "postgres", WorkerOptions(), frozenset({"nap"}), Plan(1, 1), None, in_thread)
    yield made
    made.signals.close()


def test_what_was_lost_on_the_way_and_is_locked_is_given_back_when_the_lock_is_gone(supervisor, jobs):
    receipt, place = nap_many(1)[0], supervisor.context
    (claim,) = place.backend.cycle(place.owner, (), request(1, types=frozenset({"nap"}))).claims
    place.database.recoveries += 1  # the database was away, and the answer did not arrive
    with locked(receipt):
        supervisor._reconcile()
        assert place.backend.held_by(place.owner) == [(claim.id, claim.fence)]
    until(lambda: supervisor._reconcile() or not place.backend.held_by(place.owner), what="the job to be given back")
    assert [(row.status, row.attempts) for row in jobs.until("queued", receipt)] == [("queued", 0)]
