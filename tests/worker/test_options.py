"""Tests of a worker's options: when to end, which jobs to take, how many processes, when to replace them."""

from __future__ import annotations

from collections import Counter

import pytest

from jobqueue.clock import SYSTEM
from jobqueue.models import Worker
from tests.app.jobs import greet
from tests.app.worker_jobs import hold, note_run, poison
from tests.app.worker_jobs_b import at_checkpoints_async, grow, hopeless, judge, nap, nap_many, third_time_lucky
from tests.worker.harness import until

WHERE = pytest.mark.parametrize("processes", ["0", "1"])


# When to end


@WHERE
def test_a_drain_ends_once_nothing_runs_is_due_or_awaits_a_retry(start_worker, jobs, ledger, processes):
    receipts = [*nap_many(25, seconds=0.01), third_time_lucky.enqueue(), third_time_lucky.enqueue()]
    soon, late = nap.using(delay=0.3).enqueue(), nap.using(delay=3600).enqueue()
    dead, snoozed = hopeless.enqueue(), judge.enqueue(which="snooze")
    worker = start_worker("--drain", "--processes", processes, up=0)
    assert worker.wait() == 0
    assert set(jobs.statuses(*receipts)) == {"completed"}
    assert jobs.statuses(late, dead, snoozed) == ["queued", "dead_letter", "queued"]
    assert jobs.get(soon).status in ("queued", "completed")
    assert ledger.overlaps() == []
    until(lambda: not list(worker.relatives()), 3, "the end of its processes")


def test_a_drain_waits_for_what_still_runs(start_worker, jobs, ledger):
    receipt = hold.enqueue(gate="go")
    worker = start_worker("--drain")
    until(lambda: ledger.started(receipt.id))
    worker.until_said("slots")
    late = note_run.enqueue(number=2)
    jobs.until("completed", late)
    assert worker.process.poll() is None
    ledger.open_gate("go")
    assert worker.wait() == 0
    assert jobs.get(receipt).status == "completed"


def test_a_drain_does_not_wait_for_a_job_that_is_gone(start_worker, queue, jobs):
    receipt = judge.enqueue(which="retry")  # again in an hour
    worker = start_worker("--drain")
    worker.until_said("Job retried")
    assert worker.process.poll() is None
    queue.operator.purge([receipt.id])
    assert worker.wait() == 0


def test_a_drain_of_an_empty_queue_ends_at_once(start_worker):
    began = SYSTEM.monotonic()
    worker = start_worker("--drain", up=0)
    assert worker.wait() == 0
    assert SYSTEM.monotonic() - began < 5


@WHERE
def test_it_takes_no_more_jobs_than_it_was_told(start_worker, jobs, ledger, processes):
    receipts = nap_many(12)
    worker = start_worker("--max-jobs", "5", "--processes", processes, up=0)
    assert worker.wait() == 0
    assert sorted(jobs.statuses(*receipts)) == ["completed"] * 5 + ["queued"] * 7
    assert len(ledger.runs()) == 5
    assert [jobs.get(one).attempts for one in receipts] == [1] * 5 + [0] * 7


# Which jobs


def test_it_serves_its_queues_alone(start_worker, jobs):
    mail, sms, other = (nap.using(queue=name).enqueue() for name in ("mail", "sms", "default"))
    worker = start_worker("--queue", "mail", "--queue", "sms", "--drain", up=0)
    assert worker.wait() == 0
    assert jobs.statuses(mail, sms, other) == ["completed", "completed", "queued"]


def test_it_runs_its_types_alone_under_their_former_names_too(start_worker, jobs, alias):
    napped, noted = nap.enqueue(), note_run.enqueue()
    former = greet.using(delay=0).enqueue(name="Zoë")
    type(jobs.get(former)).objects.using(alias).filter(pk=former.id).update(type="greet")
    worker = start_worker("--type", "nap", "--type", "greet.v2", "--drain", up=0)
    assert worker.wait() == 0
    assert jobs.statuses(napped, noted, former) == ["completed", "queued", "completed"]


def test_it_leaves_the_types_it_is_told_to_leave(start_worker, jobs):
    napped, noted = nap.enqueue(), note_run.enqueue()
    worker = start_worker("--exclude-type", "nap", "--drain", up=0)
    assert worker.wait() == 0
    assert jobs.statuses(napped, noted) == ["queued", "completed"]


def test_a_type_that_nobody_knows_stays_queued(start_worker, jobs, alias):
    unknown, known = nap.enqueue(), nap.enqueue()
    type(jobs.get(unknown)).objects.using(alias).filter(pk=unknown.id).update(type="from_another_release")
    worker = start_worker("--drain", up=0)
    assert worker.wait() == 0
    assert jobs.statuses(unknown, known) == ["queued", "completed"]
    assert jobs.get(unknown).attempts == 0


# In which processes


def test_without_processes_everything_runs_in_the_worker_itself(start_worker, jobs, ledger):
    running = hold.enqueue(gate="go")
    others = nap_many(20)
    awaited = [at_checkpoints_async.enqueue(gate="go") for _ in range(3)]
    again, dead = third_time_lucky.enqueue(), hopeless.enqueue()
    exits = [poison.enqueue(which=which) for which in ("SystemExit", "unspeakable")]
    worker = start_worker("--processes", "0", up=0)
    jobs.until("completed", *others, again)
    jobs.until("dead_letter", dead, *exits)
    assert jobs.get(running).status == "in_progress"
    ledger.open_gate("go")
    jobs.until("completed", running, *awaited)
    assert {run.pid for run in ledger.runs()} == {worker.pid}
    assert len(list(worker.relatives())) == 1
    assert "10 in this process" in worker.output
    assert worker.stop() == 0


def test_two_processes_share_the_work(start_worker, jobs, ledger, alias):
    receipts = [hold.enqueue(gate="go") for _ in range(6)]
    worker = start_worker("--processes", "2", "--concurrency", "3", "--name", "pair", up=2)
    until(lambda: ledger.started(*(one.id for one in receipts)))
    pids = [run.pid for run in ledger.runs()]
    assert sorted(set(pids)) == worker.executors
    assert [pids.count(pid) for pid in worker.executors] == [3, 3]
    record = Worker.objects.using(alias).get(name="pair")
    assert (record.processes, record.slots) == (2, 6)
    ledger.open_gate("go")
    jobs.until("completed", *receipts)
    assert worker.stop() == 0
    assert not Worker.objects.using(alias).exists()


# Renewed processes


def test_a_process_that_ran_enough_jobs_is_replaced_and_nothing_is_lost(start_worker, jobs, ledger):
    running = hold.enqueue(gate="go")
    worker = start_worker("--max-jobs-per-process", "5", "--concurrency", "2")
    until(lambda: ledger.started(running.id))
    [first] = {run.pid for run in ledger.runs()}
    jobs.until("completed", *nap_many(12))
    assert first in worker.executors, "it still has a job to end"
    ledger.open_gate("go")
    jobs.until("completed", running)
    until(lambda: first not in worker.executors and len(worker.executors) == 1, what="the end of those replaced")
    counts = Counter(run.pid for run in ledger.runs())
    assert counts[first] == 5
    assert max(counts.values()) == 5
    assert [run.fence for run in ledger.runs()] == [1] * 13
    assert worker.stop() == 0


def test_a_process_that_grew_too_large_is_replaced(start_worker, jobs):
    worker = start_worker("--max-rss", "150")
    [first] = worker.executors
    jobs.until("completed", grow.enqueue(megabytes=200))
    until(lambda: worker.executors and first not in worker.executors, what="another executor")
    assert "MB" in worker.output.split("is replaced: it uses ")[1]
    [after] = jobs.until("completed", grow.enqueue(megabytes=1))
    assert after.result != first
    assert after.attempts == 1
    assert worker.stop() == 0
