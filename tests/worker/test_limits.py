"""Tests of jobs past their limits: asked to stop, then killed. Jobs that only look dead are left alone."""

from __future__ import annotations

import pytest

from jobqueue.clock import SYSTEM
from tests.app.worker_jobs import (
    ask,
    backtrack,
    heed,
    heed_async,
    hold,
    hold_briefly_leased,
    hold_interpreter,
    hold_once,
    note_run,
    snore,
    stay,
    stay_async,
)
from tests.worker.harness import freeze, is_gone, until

SWEEPS_OFTEN = {"jobqueue.worker.supervisor.duties.sweep.Sweep.every": 0.3}

STUBBORN = {
    "catches everything": (stay, {"gate": "never"}),
    "sleeps in one call": (snore, {}),
    "is a coroutine that catches everything": (stay_async, {"gate": "never"}),
}
HEEDING = {"a thread": heed, "a coroutine": heed_async}

each_stubborn = pytest.mark.parametrize("which", STUBBORN)
each_heeding = pytest.mark.parametrize("which", HEEDING)


def enqueue_stubborn(which, **options):
    handler, fields = STUBBORN[which]
    return handler.using(**options).enqueue(**fields)


def test_a_job_that_keeps_the_interpreter_lock_for_three_leases_is_not_run_twice(start_worker, jobs, ledger):
    start_worker("--lease", "2", constants=SWEEPS_OFTEN)
    receipt = hold_interpreter.enqueue(seconds=6.2)
    until(lambda: ledger.started(receipt.id))
    start_worker("--lease", "2", constants=SWEEPS_OFTEN)
    (row,) = jobs.until("completed", receipt)
    assert (row.attempts, row.fence, row.result, len(ledger.runs())) == (1, 1, "fence 1", 1)
    assert jobs.endings(receipt) == []


def test_a_type_with_a_short_lease_is_renewed_in_time_beside_others_with_long_ones(queue, start_worker, jobs, ledger):
    start_worker()
    long = hold.enqueue(gate="go")
    until(lambda: ledger.started(long.id))
    short = hold_briefly_leased.enqueue(gate="go")
    until(lambda: ledger.started(short.id))
    first = jobs.get(short).lease_until
    until(lambda: jobs.get(short).lease_until > first or queue.now() > first, what="a renewal")
    assert queue.now() < first
    assert jobs.get(short).lease_until > first
    ledger.open_gate("go")
    jobs.until("completed", long, short)


@each_stubborn
def test_a_job_that_ignores_its_time_limit_is_killed_and_its_slot_is_free_again(start_worker, jobs, ledger, which):
    worker = start_worker("--concurrency", "1", "--stop-grace", "0.2")
    receipt = enqueue_stubborn(which, timeout=0.2)
    until(lambda: ledger.started(receipt.id))
    (executor,) = worker.executors
    next_one = note_run.enqueue(number=7)
    (dead,) = jobs.until("dead_letter", receipt)
    assert (dead.attempts, dead.end_reason, dead.crash_count) == (2, "timed out", 0)
    assert jobs.endings(receipt) == ["timed_out", "timed_out"]
    assert "0.2 s" in dead.error
    assert is_gone(executor)
    jobs.until("completed", next_one)
    assert ledger.overlaps() == []
    assert worker.stop() == 0


def test_a_job_that_keeps_the_interpreter_lock_beyond_its_time_limit_is_killed(start_worker, jobs, ledger):
    start_worker("--concurrency", "1", "--stop-grace", "0.2")
    receipt = backtrack.using(timeout=0.2).enqueue()
    (row,) = jobs.until("completed", receipt)
    assert (row.attempts, jobs.endings(receipt)) == (2, ["timed_out"])
    assert ledger.overlaps() == []


@each_heeding
def test_a_job_that_heeds_its_time_limit_is_ended_without_its_executor(start_worker, jobs, ledger, which):
    worker = start_worker("--concurrency", "2", "--stop-grace", "20")
    neighbour = hold.enqueue(gate="go")
    until(lambda: ledger.started(neighbour.id))
    executors = worker.executors
    receipt = HEEDING[which].using(timeout=0.2).enqueue(gate="never")
    (dead,) = jobs.until("dead_letter", receipt)
    assert (dead.attempts, dead.end_reason) == (2, "timed out")
    assert jobs.endings(receipt) == ["timed_out", "timed_out"]
    assert jobs.get(receipt).error == "The attempt must stop: its time is up."
    assert {one.error_class for one in jobs.history(receipt)} == {"jobqueue.errors.Interrupted"}
    assert all("in heed" in one.traceback for one in jobs.history(receipt))
    assert all(0.1 < one.duration < 15 for one in jobs.history(receipt))  # at its limit, and not after the grace
    ledger.open_gate("go")
    (row,) = jobs.until("completed", neighbour)
    assert (row.fence, worker.executors) == (1, executors)


def test_an_executor_that_stands_still_is_killed_when_the_time_limit_of_its_job_is_over(start_worker, jobs, ledger):
    worker = start_worker("--concurrency", "1", "--stop-grace", "0.2")
    receipt = hold_once.using(timeout=0.5).enqueue(gate="never")
    until(lambda: ledger.started(receipt.id))
    freeze(*worker.executors)
    (row,) = jobs.until("completed", receipt)
    assert (row.attempts, jobs.endings(receipt)) == (2, ["timed_out"])


def test_the_neighbour_of_a_job_that_had_to_be_killed_has_its_attempt_back(start_worker, jobs, ledger):
    start_worker("--concurrency", "2", "--stop-grace", "0.2")
    neighbour = hold.enqueue(gate="go")
    until(lambda: ledger.started(neighbour.id))
    receipt = stay.using(timeout=0.2, max_retries=1).enqueue(gate="never")
    jobs.until("dead_letter", receipt)
    ledger.open_gate("go")
    (row,) = jobs.until("completed", neighbour)
    assert (row.attempts, row.crash_count, row.fence, jobs.endings(neighbour)) == (1, 0, 2, ["released"])
    assert ledger.overlaps() == []


# Cancelled by an operator


def cancel(queue, receipt):
    """Cancel a running job; return the moment."""
    moment = SYSTEM.monotonic()
    assert queue.operator.cancel([receipt.id]).done == (receipt.id,)
    return moment


def assert_cancelled(jobs, receipt):
    (row,) = jobs.until("failed", receipt)
    assert (row.end_reason, row.fence) == ("cancelled", 1)
    assert jobs.endings(receipt) == ["cancelled"]


@each_heeding
def test_a_running_job_hears_within_a_second_that_it_is_cancelled(queue, start_worker, jobs, ledger, which):
    worker = start_worker("--stop-grace", "20")
    receipt = HEEDING[which].enqueue(gate="never")
    until(lambda: ledger.started(receipt.id))
    executors = worker.executors
    moment = cancel(queue, receipt)
    assert_cancelled(jobs, receipt)
    (broken,) = ledger.entries("broken")
    assert broken["at"] - moment < 1.0
    assert worker.executors == executors


def test_a_running_job_can_ask_whether_it_is_cancelled(queue, start_worker, jobs, ledger):
    start_worker("--stop-grace", "20")
    receipt = ask.enqueue(gate="never")
    until(lambda: ledger.started(receipt.id))
    moment = cancel(queue, receipt)
    assert_cancelled(jobs, receipt)
    heard = ledger.entries("heard") + ledger.entries("caught")
    assert heard[0]["at"] - moment < 1.0


@each_stubborn
def test_a_cancelled_job_that_does_not_stop_is_killed(queue, start_worker, jobs, ledger, which):
    worker = start_worker("--concurrency", "1", "--stop-grace", "0.2")
    receipt = enqueue_stubborn(which)
    until(lambda: ledger.started(receipt.id))
    (executor,) = worker.executors
    cancel(queue, receipt)
    assert_cancelled(jobs, receipt)
    assert is_gone(executor)
    jobs.until("completed", note_run.enqueue(number=7))
    assert len(ledger.runs(receipt.id)) == 1
    assert worker.stop() == 0
