"""Tests of whole workers that are killed: their jobs come back at once where the death is proved, and never before."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from random import Random

import pytest

from jobqueue.clock import SYSTEM
from jobqueue.models import Worker
from jobqueue.records import Ending
from tests.app.worker_jobs import backtrack, hold_once, note_run, tick
from tests.app.worker_jobs_deaths import kill_worker, leave_behind
from tests.worker.harness import UNPROVED, freeze, is_gone, until
from tests.worker.test_shutdown import IN_A_CONTAINER

#: Seconds. A measured second, on a machine that does other things too; leases would take a minute.
AT_ONCE = 10.0


def kill(*pids):
    for pid in pids:
        with suppress(ProcessLookupError):  # the death of another one may have ended it
            os.kill(pid, signal.SIGKILL)


def kill_all(worker):
    """Kill a worker with all that belongs to it, so that no process acts between two kills."""
    family = list(worker.relatives())
    freeze(*family)
    kill(*family)


def started(ledger, *receipts):
    until(lambda: ledger.started(*(one.id for one in receipts)), what="the start of all")


@pytest.mark.parametrize("heir", ["that is there", "that is started"])
def test_the_jobs_of_a_killed_worker_run_again_at_once(start_worker, jobs, ledger, alias, heir):
    worker = start_worker("--processes", "2", up=2)
    receipts = [hold_once.enqueue(gate="never") for _ in range(4)]
    started(ledger, *receipts)
    if heir == "that is there":
        start_worker("--name", "heir")
    kill_all(worker)
    if heir == "that is started":
        start_worker("--name", "heir")
    for row in jobs.until("completed", *receipts, seconds=AT_ONCE):
        assert (row.attempts, row.fence, row.crash_count, row.result) == (1, 2, 1, "fence 2")
        (died,) = jobs.history(row.id)
        assert (died.ending, died.fence) == (Ending.CRASHED, 1)
        assert f":{worker.pid}:" in died.message
    assert ledger.overlaps() == []
    until(lambda: [one.name for one in Worker.objects.using(alias).all()] == ["heir"], what="the heir alone")


def test_a_job_that_its_worker_ran_alone_pays_with_an_attempt(start_worker, jobs, ledger):
    worker = start_worker()
    receipt = hold_once.enqueue(gate="never")
    started(ledger, receipt)
    kill_all(worker)
    start_worker()
    (row,) = jobs.until("completed", receipt, seconds=AT_ONCE)
    assert (row.attempts, row.fence, row.crash_count, jobs.endings(receipt)) == (2, 2, 0, ["crashed"])


def test_the_executors_of_a_dead_supervisor_end_first_even_one_that_keeps_the_interpreter_lock(
    start_worker, jobs, ledger
):
    worker = start_worker("--processes", "2", up=2)
    receipts = [backtrack.enqueue(), tick.enqueue(gate="go")]
    started(ledger, *receipts)
    _, *others = worker.family
    start_worker()
    kill(worker.pid)
    ledger.open_gate("go")
    jobs.until("completed", *receipts, seconds=AT_ONCE)
    assert all(map(is_gone, others))
    assert ledger.overlaps() == []


def test_a_worker_in_a_container_of_its_own_is_found_dead_from_outside(start_worker, jobs, ledger):
    worker = start_worker(prefix=IN_A_CONTAINER, up=0)
    receipt = hold_once.enqueue(gate="never")
    started(ledger, receipt)
    start_worker()
    kill_all(worker)
    jobs.until("completed", receipt, seconds=AT_ONCE)
    assert jobs.endings(receipt) == ["crashed"]


def test_a_worker_whose_executors_load_the_project_themselves_is_found_dead_too(start_worker, jobs, ledger):
    worker = start_worker(apps=("tests.worker.threaded",))
    receipt = hold_once.enqueue(gate="never")
    started(ledger, receipt)
    start_worker()
    kill_all(worker)
    jobs.until("completed", receipt, seconds=AT_ONCE)
    assert jobs.endings(receipt) == ["crashed"]


def test_a_job_that_kills_its_whole_worker_becomes_a_dead_letter_and_the_others_go_on(start_worker, jobs, ledger):
    receipts = [hold_once.enqueue(gate="never") for _ in range(3)]
    worker = start_worker()
    started(ledger, *receipts)
    poison = kill_worker.enqueue()
    deaths = 0
    while until_dead_or_buried(worker, jobs, poison) == "dead":
        worker, deaths = start_worker(up=0), deaths + 1
    assert deaths == 3  # one in company, which is free, and one for each attempt
    (dead,) = jobs.until("dead_letter", poison)
    assert (dead.attempts, dead.crash_count, dead.end_reason) == (2, 1, "crashed")
    assert jobs.endings(poison) == ["crashed"] * 3
    jobs.until("completed", *receipts)
    assert ledger.overlaps() == []


def until_dead_or_buried(worker, jobs, poison):
    """Wait until the worker is dead, or the job that kills workers is a dead letter."""

    def met():
        return "buried" if jobs.statuses(poison) == ["dead_letter"] else worker.process.poll() is not None and "dead"

    return until(met)


@pytest.mark.parametrize(("what", "is_proved"), [("a program", True), ("a copy", False)])
def test_a_copy_of_the_process_that_a_handler_left_may_still_act_and_a_program_may_not(
    start_worker, jobs, ledger, what, is_proved, look
):
    worker = start_worker()
    receipt = leave_behind.enqueue(what=what)
    until(lambda: ledger.entries("child"), what="what it left")
    (left,) = [entry["child"] for entry in ledger.entries("child")]
    kill_all_but(worker, left)
    if not is_proved:
        look()
        assert jobs.statuses(receipt) == ["in_progress"]
        kill(left)
        until(lambda: is_gone(left))
    # A moment may pass until the kernel frees the lock, or the server is done with the dead worker's last statement.
    until(lambda: (look(), jobs.statuses(receipt))[1] == ["queued"])


def kill_all_but(worker, spared):
    family = [one for one in worker.relatives() if one != spared]
    kill(*family)
    until(lambda: all(map(is_gone, family)))


def test_a_frozen_worker_is_not_dead_nor_is_one_with_a_single_frozen_process(start_worker, jobs, ledger, look):
    worker = start_worker("--processes", "2", up=2)
    receipts = [tick.enqueue(gate="go") for _ in range(2)]
    started(ledger, *receipts)
    supervisor, zygote, *executors = family = worker.family
    freeze(*family)
    look()
    assert jobs.statuses(*receipts) == ["in_progress"] * 2
    kill(supervisor)
    until(lambda: is_gone(supervisor))
    look()
    assert jobs.statuses(*receipts) == ["in_progress"] * 2
    kill(*executors)
    until(lambda: all(map(is_gone, executors)))
    look()
    assert jobs.statuses(*receipts) == ["in_progress"] * 2
    kill(zygote)
    until(lambda: is_gone(zygote))
    look()
    assert jobs.statuses(*receipts) == ["queued"] * 2


def test_what_a_stopped_worker_could_not_store_comes_back_too(start_worker, jobs, ledger, look):
    """A worker that crashes by itself leaves its lock like one that is killed."""
    worker = start_worker()
    receipt = tick.enqueue(gate="never")
    started(ledger, receipt)
    kill(worker.zygote, worker.pid)
    until(lambda: not list(worker.relatives()))
    # A server may still be at the dead worker's last statement, which keeps the row.
    until(lambda: (look(), jobs.statuses(receipt))[1] == ["queued"])


def test_a_worker_without_a_lock_is_left_to_its_lease(start_worker, jobs, ledger, look):
    worker = start_worker(constants=UNPROVED)
    receipt = tick.enqueue(gate="never")
    started(ledger, receipt)
    kill_all(worker)
    until(lambda: not list(worker.relatives()))
    look()
    assert jobs.statuses(receipt) == ["in_progress"]
    assert "wait for the end of their leases" in worker.output


def test_no_job_overlaps_or_is_lost_while_whole_workers_die_at_random_moments(start_worker, jobs, ledger):
    rng = Random(17)
    workers = [start_worker("--concurrency", "4") for _ in range(2)]
    receipts = []
    for _ in range(6):
        least = len(ledger.entries("start")) + rng.randint(1, 35)
        receipts += [note_run.enqueue(number=number) for number in range(40)]
        until(lambda least=least: len(ledger.entries("start")) >= least)
        victim = workers.pop(rng.randrange(2))
        kill(*rng.sample(pids := list(victim.relatives()), len(pids)))
        workers.append(start_worker("--concurrency", "4"))
    began = SYSTEM.monotonic()
    rows = jobs.until("completed", *receipts)
    assert SYSTEM.monotonic() - began < 2 * AT_ONCE
    assert {ending for row in rows for ending in jobs.endings(row.id)} <= {"crashed"}
    assert ledger.overlaps() == []
