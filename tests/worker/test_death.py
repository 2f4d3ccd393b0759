"""Tests of processes that die: no accepted job is lost. Where a whole worker dies, its lease alone tells here."""

from __future__ import annotations

import os
import signal

import pytest
from django.contrib.auth.models import Group

from jobqueue.clock import SYSTEM
from tests.app.worker_jobs import backtrack, die_once_stored, hold, hold_atomic, hold_once, note_run, poison, tick
from tests.worker.harness import UNPROVED, freeze, is_gone, until


def kill(*pids):
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def until_leases_end(jobs, queue, *receipts):
    until(lambda: all(jobs.get(one).lease_until < queue.now() for one in receipts), what="the ends of leases")


def started(ledger, *receipts):
    until(lambda: ledger.started(*(one.id for one in receipts)), what="the start of all")


def seconds_until_back(jobs, *receipts):
    """Kill has just been called: how long the rows still say that they are held by the first claim."""
    began = SYSTEM.monotonic()
    until(lambda: all((row := jobs.get(one)).status == "queued" or row.fence > 1 for one in receipts))
    return SYSTEM.monotonic() - began


def test_the_death_of_an_executor_costs_its_only_job_one_attempt_and_is_settled_within_a_second(
    start_worker, jobs, ledger
):
    worker = start_worker()
    receipt = hold_once.enqueue(gate="never")
    started(ledger, receipt)
    kill(*worker.executors)
    assert seconds_until_back(jobs, receipt) < 1.0
    (row,) = jobs.until("completed", receipt)
    assert (row.attempts, row.fence, row.crash_count, row.result) == (2, 2, 0, "fence 2")
    (died,) = jobs.history(receipt)
    assert (died.ending, died.attempt, died.fence) == ("crashed", 1, 1)
    assert "SIGKILL" in died.message
    assert ledger.overlaps() == []
    assert worker.stop() == 0


def test_several_jobs_of_a_dead_executor_keep_their_attempts_and_run_alone_next(start_worker, jobs, ledger):
    worker = start_worker()
    receipts = [hold_once.enqueue(gate="never") for _ in range(4)]
    started(ledger, *receipts)
    (executor,) = worker.executors
    kill(executor)
    assert seconds_until_back(jobs, *receipts) < 1.0
    for row in jobs.until("completed", *receipts):
        assert (row.attempts, row.fence, row.crash_count) == (1, 2, 1)
        assert jobs.endings(row.id) == ["crashed"]
    second = [run for run in ledger.runs() if run.fence == 2]
    assert len({run.pid for run in second} - {executor}) == 4
    assert ledger.overlaps() == []


def test_the_neighbours_of_a_dead_executor_do_not_notice(start_worker, jobs, ledger):
    start_worker("--processes", "2", up=2)
    receipts = [hold.enqueue(gate="go") for _ in range(6)]
    started(ledger, *receipts)
    victim = ledger.runs()[0].pid
    innocent = [run.job for run in ledger.runs() if run.pid != victim]
    assert innocent
    kill(victim)
    seconds_until_back(jobs, *(one for one in receipts if one.id not in innocent))
    ledger.open_gate("go")
    jobs.until("completed", *receipts)
    for row in map(jobs.get, innocent):
        assert (row.attempts, row.fence, row.crash_count, jobs.endings(row.id)) == (1, 1, 0, [])


def test_the_culprit_is_found_among_many_and_alone_pays(start_worker, jobs, ledger):
    receipts = [hold_once.enqueue(gate="never") for _ in range(3)]
    start_worker()
    started(ledger, *receipts)
    culprit = poison.enqueue(which="os._exit")
    (dead,) = jobs.until("dead_letter", culprit)
    assert (dead.attempts, dead.crash_count, dead.end_reason) == (2, 1, "crashed")
    assert jobs.endings(culprit) == ["crashed", "crashed", "crashed"]  # in company first, and that one was free
    for row in jobs.until("completed", *receipts):
        assert (row.attempts, row.fence, row.crash_count) == (1, 2, 1)


@pytest.mark.parametrize("victim", ["executor", "supervisor"])
def test_what_an_atomic_handler_wrote_dies_with_it(queue, start_worker, jobs, ledger, alias, victim):
    worker = start_worker("--lease", "2", constants=UNPROVED)
    receipt = hold_atomic.enqueue(gate="never")
    started(ledger, receipt)
    if victim == "executor":
        kill(*worker.executors)
        assert seconds_until_back(jobs, receipt) < 1.0
    else:
        kill(worker.pid)
        until_leases_end(jobs, queue, receipt)
        start_worker("--lease", "2", constants=UNPROVED)
    (row,) = jobs.until("completed", receipt)
    assert (row.attempts, row.fence, row.result) == (2, 2, "fence 2")
    written = Group.objects.using(alias).filter(name__contains=receipt.id)
    names = [one.name for one in written]
    written.delete()
    assert names == [f"written by {receipt.id} 2"]


def test_no_job_is_lost_or_run_twice_at_once_while_executors_die_all_the_time(start_worker, jobs, ledger):
    receipts = [note_run.enqueue(number=number) for number in range(150)]
    worker = start_worker("--concurrency", "4", "--processes", "2", up=2)
    for threshold in (10, 30, 50, 70, 90):
        until(lambda least=threshold: len(ledger.entries("end")) >= least)
        for pid in worker.executors[:1]:
            kill(pid)
    jobs.until("completed", *receipts)
    assert ledger.overlaps() == []
    assert worker.stop() == 0


def test_the_death_of_the_zygote_ends_the_worker_and_gives_its_jobs_back_at_once(start_worker, jobs, ledger):
    worker = start_worker()
    receipts = [tick.enqueue(gate="go") for _ in range(2)]
    started(ledger, *receipts)
    executors = worker.executors
    kill(worker.zygote)
    assert seconds_until_back(jobs, *receipts) < 1.0
    assert worker.wait() == 1
    assert all(map(is_gone, executors))
    assert "Start it again" in worker.output
    assert "Traceback" not in worker.output
    assert jobs.statuses(*receipts) == ["queued"] * 2
    ledger.open_gate("go")
    start_worker()
    for row in jobs.until("completed", *receipts):
        assert (row.attempts, row.fence, row.crash_count) == (1, 2, 1)
    assert ledger.overlaps() == []


def test_the_executors_of_a_dead_supervisor_end_before_the_leases_even_one_that_keeps_the_interpreter_lock(
    queue, start_worker, jobs, ledger
):
    worker = start_worker("--lease", "2", "--processes", "2", up=2, constants=UNPROVED)
    receipts = [backtrack.enqueue(), tick.enqueue(gate="go")]
    started(ledger, *receipts)
    _, zygote, *executors = worker.family
    assert {run.pid for run in ledger.runs()} == set(executors)
    kill(worker.pid)
    until(lambda: all(map(is_gone, [zygote, *executors])), what="the end of the executors")
    assert all(queue.now() < jobs.get(one).lease_until for one in receipts)
    assert jobs.statuses(*receipts) == ["in_progress"] * 2
    until_leases_end(jobs, queue, *receipts)
    ledger.open_gate("go")
    start_worker("--lease", "2", constants=UNPROVED)
    for row in jobs.until("completed", *receipts):
        assert (row.attempts, row.fence) == (1, 2)
        assert jobs.endings(row.id) == ["lease_lost"]
    assert ledger.overlaps() == []


def test_a_job_in_no_company_pays_for_a_lease_that_ran_out(queue, start_worker, jobs, ledger):
    worker = start_worker("--lease", "2", constants=UNPROVED)
    receipt = hold_once.enqueue(gate="never")
    started(ledger, receipt)
    kill(worker.pid)
    until_leases_end(jobs, queue, receipt)
    start_worker(constants=UNPROVED)
    (row,) = jobs.until("completed", receipt)
    assert (row.attempts, row.fence, jobs.endings(receipt)) == (2, 2, ["lease_lost"])


@pytest.mark.parametrize("order", [1, -1], ids=["parents first", "children first"])
def test_no_job_is_lost_when_the_whole_worker_is_killed(queue, start_worker, jobs, ledger, order):
    worker = start_worker("--lease", "2", "--concurrency", "5", "--processes", "2", up=2, constants=UNPROVED)
    running = [tick.enqueue(gate="go") for _ in range(8)]
    started(ledger, *running)
    waiting = [note_run.enqueue(number=number) for number in range(30)]
    family = worker.family
    freeze(*family)  # so that none of them begins anything between two kills
    kill(*family[::order])
    until(lambda: not list(worker.relatives()), what="the end of all")
    ledger.open_gate("go")
    until(lambda: all(row.status == "queued" or row.lease_until < queue.now() for row in map(jobs.get, running)))
    start_worker("--lease", "2", constants=UNPROVED | {"jobqueue.worker.supervisor.duties.SWEEP_EVERY": 0.5})
    jobs.until("completed", *running, *waiting)
    assert {len(ledger.runs(one.id)) for one in running} == {2}
    assert ledger.overlaps() == []


def test_a_worker_that_was_already_there_takes_over_from_one_that_died(start_worker, jobs, ledger):
    worker = start_worker("--lease", "2", constants=UNPROVED)
    receipts = [hold_once.enqueue(gate="never"), hold_once.enqueue(gate="never")]
    started(ledger, *receipts)
    start_worker("--lease", "2", constants=UNPROVED | {"jobqueue.worker.supervisor.duties.sweep.Sweep.every": 0.5})
    kill(worker.pid)
    jobs.until("completed", *receipts)
    assert ledger.overlaps() == []


def test_what_was_stored_before_its_process_died_is_told_of_as_completed(start_worker, jobs):
    receipt = die_once_stored.enqueue()
    worker = start_worker()
    worker.until_said(f"Job completed: die_once_stored {receipt.id}")
    assert "lease lost" not in worker.output
    [done] = jobs.until("completed", receipt)
    assert (done.result, done.attempts, jobs.endings(receipt)) == ("stored", 1, [])
