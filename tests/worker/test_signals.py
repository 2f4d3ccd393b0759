"""Tests of a worker's signals, and of receivers that fail or are slow."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from jobqueue.clock import SYSTEM
from jobqueue.models import Job
from tests.app.worker_jobs import hold
from tests.app.worker_jobs_b import (
    RECEIVERS,
    bring_up,
    bring_up_atomic,
    hopeless,
    judge,
    nap,
    nap_many,
    report,
    third_time_lucky,
)
from tests.worker.harness import until
from tests.worker.test_follow_ups import take_away


def heard(ledger, signal, job=None):
    """What the receivers of a signal noted, of one job or of all."""
    wanted = getattr(job, "id", job)
    return [one for one in ledger.entries("signal") if one["signal"] == signal and wanted in (None, one.get("job_id"))]


@pytest.fixture
def start_listening(start_worker):
    """A function that starts a worker with receivers that do as they are told."""

    def start(manner, *options, **given):
        return start_worker(*options, environment={RECEIVERS: manner}, **given)

    return start


@pytest.mark.parametrize("processes", ["0", "1"])
def test_everything_that_happens_to_a_job_is_told(start_listening, jobs, ledger, processes):
    [plain], again, dead, cancelled = (
        nap_many(1),
        third_time_lucky.enqueue(),
        hopeless.enqueue(),
        judge.enqueue("cancel"),
    )
    parent, reported = bring_up.enqueue(), report.enqueue(gate="go")
    worker = start_listening("note", "--name", "north", "--processes", processes, up=0)
    jobs.until("completed", plain, again, parent)
    jobs.until("dead_letter", dead)
    jobs.until("failed", cancelled)
    until(lambda: heard(ledger, "progressed", reported))
    ledger.open_gate("go")
    jobs.until("completed", reported)
    until(lambda: heard(ledger, "completed", reported))
    until(lambda: len(heard(ledger, "enqueued")) == 2)
    assert worker.stop() == 0

    of = Counter(one["signal"] for one in ledger.entries("signal") if one.get("job_id") == again.id)
    assert of == {"started": 3, "retried": 2, "completed": 1}
    [told] = heard(ledger, "completed", plain)
    assert (told["job_type"], told["queue"], told["attempt"], told["max_retries"]) == ("nap", "default", 1, 3)
    assert told["worker"] == "north"
    assert told["duration"] >= 0
    [told, _] = heard(ledger, "retried", again)
    assert (told["delay"], told["error_class"], told["error"]) == (0.2, "ValueError", "not yet: attempt 1")
    [told] = heard(ledger, "dead_lettered", dead)
    assert (told["reason"], told["error"]) == ("attempts used up", "no hope")
    assert [one["reason"] for one in heard(ledger, "cancelled", cancelled)] == ["cancelled"]
    told = [json.loads(one["progress"])["percent"] for one in heard(ledger, "progressed", reported)]
    assert told == [*range(41), 90]
    assert {one["job_type"] for one in heard(ledger, "enqueued")} == {"nap", "note_run"}
    assert {one["job_id"] for one in heard(ledger, "enqueued")} == set(jobs.get(parent).result)
    assert [one["worker"] for one in heard(ledger, "worker_started")] == ["north"]
    assert [one["worker"] for one in heard(ledger, "worker_stopped")] == ["north"]
    executors = {one["announced"] for one in heard(ledger, "executor_started")}
    assert len(executors) == 1
    assert {one["pid"] for one in heard(ledger, "started")} == executors, "signals of jobs come from the executor"


@pytest.mark.parametrize("parent_type", [bring_up, bring_up_atomic], ids=["plain", "atomic"])
def test_only_follow_up_jobs_that_were_stored_are_told_of_and_each_once(
    start_listening, jobs, ledger, alias, parent_type
):
    nap.using(idempotency_key="mine", delay=3600).enqueue()
    judge.using(idempotency_key="theirs", delay=3600).enqueue(which="retry")
    parent = parent_type.enqueue(keys={"mine": "nap", "theirs": "nap", "free": "nap"})
    worker = start_listening("note")
    jobs.until("completed", parent)
    stored = sorted(Job.objects.using(alias).filter(parent_id=parent.id).values_list("id", flat=True))
    jobs.until("completed", *stored)
    assert worker.stop() == 0
    assert sorted(one["job_id"] for one in heard(ledger, "enqueued")) == stored
    lines = [line for line in worker.output.splitlines() if "INFO" in line and "Job enqueued" in line]
    assert sorted(line.split()[-1] for line in lines) == stored
    assert worker.output.count("The key 'theirs' belongs to job") == 1


def test_a_lost_lease_is_told(start_listening, jobs, ledger, alias):
    receipt = hold.enqueue(gate="go")
    worker = start_listening("note")
    until(lambda: ledger.started(receipt.id))
    take_away(alias, receipt)
    ledger.open_gate("go")
    until(lambda: heard(ledger, "lease_lost", receipt))
    assert heard(ledger, "completed", receipt) == []
    assert worker.stop() == 0


def test_receivers_that_fail_harm_nothing(start_listening, jobs, ledger):
    receipts, dead = nap_many(10), hopeless.enqueue()
    worker = start_listening("fail")
    jobs.until("completed", *receipts)
    jobs.until("dead_letter", dead)
    until(lambda: heard(ledger, "dead_lettered", dead))
    assert [run.fence for run in ledger.runs()] == [1] * 10
    assert worker.stop() == 0
    assert heard(ledger, "worker_stopped")


def test_receivers_that_dawdle_keep_no_job_waiting(start_listening, jobs, ledger):
    worker = start_listening("dawdle")
    began = SYSTEM.monotonic()
    receipts = nap_many(40)
    jobs.until("completed", *receipts)
    assert SYSTEM.monotonic() - began < 2, "forty jobs, each told of twice, for 0.05 s each time"
    late = nap_many(5)
    jobs.until("completed", *late, seconds=2)
    assert worker.stop(8) == 0, "it waits for what they still have to hear, and not for ever"
