"""Tests of the shutdown: jobs may end in time, others are given back, and a second signal is obeyed."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from jobqueue.clock import SYSTEM
from tests.app.worker_jobs import hold, note_run, stay
from tests.app.worker_jobs_b import at_checkpoints, at_checkpoints_async, leave_orphans, run_program, wind_up
from tests.worker.harness import children, until

BOTH = pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])


def is_untouched(job):
    """Whether a job is as if it had never been claimed, but for its fence."""
    return (job.status, job.attempts, job.lease_owner, job.lease_until) == ("queued", 0, None, None)


@BOTH
def test_what_runs_may_end_within_the_grace_and_the_rest_has_its_attempt_back(start_worker, jobs, ledger, number):
    quick, slow = hold.enqueue(gate="quick"), hold.enqueue(gate="never")
    worker = start_worker("--shutdown-grace", "1")
    until(lambda: ledger.started(quick.id, slow.id))
    os.kill(worker.pid, number)
    worker.until_said("Stopping")
    untaken = note_run.enqueue(number=1)
    ledger.open_gate("quick")
    assert worker.wait() == 0
    assert jobs.get(quick).status == "completed"
    assert is_untouched(jobs.get(slow))
    assert [(one.ending, one.attempt, one.fence) for one in jobs.history(slow)] == [("released", 1, 1)]
    assert is_untouched(jobs.get(untaken))
    assert jobs.history(untaken) == []
    assert [run.ended for run in ledger.runs(slow.id)] == [None]
    until(lambda: not list(worker.relatives()), 3, "the end of its processes")


@BOTH
def test_an_idle_worker_says_that_it_stops(start_worker, alias, number):
    worker = start_worker()
    os.kill(worker.pid, number)
    assert worker.wait() == 0
    assert worker.output.splitlines()[-1].endswith("INFO    Stopping: no job is under way")


@BOTH
def test_a_second_signal_gives_everything_back_at_once(start_worker, jobs, ledger, number):
    receipts = [hold.enqueue(gate="never"), stay.enqueue(gate="never")]
    worker = start_worker("--shutdown-grace", "60")
    until(lambda: ledger.started(*(one.id for one in receipts)))
    os.kill(worker.pid, number)
    worker.until_said("Stopping")
    began = SYSTEM.monotonic()
    os.kill(worker.pid, number)
    assert worker.wait() == 0
    assert SYSTEM.monotonic() - began < 3
    for receipt in receipts:
        assert is_untouched(jobs.get(receipt))
        assert jobs.endings(receipt) == ["released"]
    assert ledger.entries("end") == []
    until(lambda: not list(worker.relatives()), 3, "the end of its processes")


def test_handlers_hear_of_the_end_and_may_leave_early(start_worker, jobs, ledger):
    early, patient = wind_up.enqueue(gate="never"), at_checkpoints.enqueue(gate="never")
    awaited = at_checkpoints_async.enqueue(gate="never")
    worker = start_worker("--shutdown-grace", "60")
    until(lambda: ledger.started(early.id, patient.id, awaited.id))
    assert worker.stop(10) == 0
    assert (jobs.get(early).status, jobs.get(early).result) == ("completed", "ended early")
    for receipt in (patient, awaited):
        assert is_untouched(jobs.get(receipt))
        assert jobs.endings(receipt) == ["released"]
    assert [one["reason"] for one in ledger.entries("interrupted")] == ["its worker stops"]


@BOTH
def test_a_signal_to_the_whole_group_interrupts_no_handler(start_worker, jobs, ledger, number):
    receipts = [hold.enqueue(gate="go") for _ in range(3)]
    worker = start_worker("--processes", "2")
    until(lambda: ledger.started(*(one.id for one in receipts)))
    os.killpg(worker.pid, number)
    worker.until_said("Stopping")
    ledger.open_gate("go")
    assert worker.wait() == 0
    jobs.until("completed", *receipts)
    assert [run.broken for run in ledger.runs()] == [None] * 3
    assert ledger.overlaps() == []


def test_a_worker_that_has_nothing_to_do_ends_at_once(start_worker):
    worker = start_worker("--shutdown-grace", "60")
    worker.until_said("slots")
    assert worker.stop(5) == 0
    assert "Traceback" not in worker.output


def test_without_processes_the_rest_is_given_back_too(start_worker, jobs, ledger):
    slow, early = hold.enqueue(gate="never"), at_checkpoints.enqueue(gate="never")
    worker = start_worker("--processes", "0", "--shutdown-grace", "0.5", up=0)
    until(lambda: ledger.started(slow.id, early.id))
    assert worker.stop() == 0
    assert is_untouched(jobs.get(slow))
    assert is_untouched(jobs.get(early))
    assert jobs.endings(slow) == ["released"]


@pytest.mark.parametrize("alias", [pytest.param("default", marks=pytest.mark.sqlite)], indirect=True)
@pytest.mark.parametrize("after", [0.05, 0.15, 0.2, 0.25, 0.3, 0.35])
def test_a_signal_that_comes_while_it_still_starts_leaves_nothing_behind(start_worker, jobs, after):
    receipt = hold.enqueue(gate="never")
    worker = start_worker("--shutdown-grace", "0", up=0)
    time.sleep(after)
    assert worker.stop(5) in (0, -signal.SIGTERM)
    until(lambda: list(worker.relatives()) == [], 3, "the end of its processes")
    assert jobs.get(receipt).status == "queued"
    assert jobs.get(receipt).attempts == 0


# As process 1


IN_A_CONTAINER = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")


@pytest.fixture
def contained():
    """What puts a worker into a namespace in which it is process 1."""
    tried = subprocess.run([*IN_A_CONTAINER, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"NOT TESTED AS PROCESS 1: this machine permits no namespace of process ids: {tried.stderr}")
    return {"prefix": IN_A_CONTAINER, "up": 0}


def test_it_works_as_process_1_and_ends_when_asked_to(start_worker, jobs, ledger, contained):
    quick, slow = hold.enqueue(gate="quick"), hold.enqueue(gate="never")
    worker = start_worker("--shutdown-grace", "1", **contained)
    until(lambda: ledger.started(quick.id, slow.id))
    supervisor = children(worker.pid)[0]
    assert Path(f"/proc/{supervisor}/status").read_text().split("NSpid:")[1].split()[:2] == [str(supervisor), "1"]
    os.kill(supervisor, signal.SIGTERM)
    worker.until_said("Stopping")
    ledger.open_gate("quick")
    assert worker.wait() == 0
    assert jobs.get(quick).status == "completed"
    assert is_untouched(jobs.get(slow))
    assert jobs.endings(slow) == ["released"]


def test_as_process_1_it_reaps_the_orphans_of_its_handlers(start_worker, jobs, contained):
    receipt = leave_orphans.enqueue(count=5)
    worker = start_worker(**contained)
    jobs.until("completed", receipt)
    supervisor = children(worker.pid)[0]
    until(lambda: len(adopted(supervisor)) == 1, 5, "an end of zombies")
    os.kill(supervisor, signal.SIGTERM)
    assert worker.wait() == 0


@pytest.mark.parametrize("alias", [pytest.param("default", marks=pytest.mark.sqlite)], indirect=True)
@pytest.mark.parametrize("processes", ["0", "1"])
def test_as_process_1_it_leaves_a_handlers_own_programs_to_the_handler(start_worker, jobs, contained, processes):
    receipt = run_program.enqueue()
    start_worker("--processes", processes, **contained)
    [done] = jobs.until("completed", receipt)
    assert done.result == 3


def adopted(pid):
    """List the children of a process, zombies too."""
    return [int(one) for task in Path(f"/proc/{pid}/task").iterdir() for one in (task / "children").read_text().split()]
