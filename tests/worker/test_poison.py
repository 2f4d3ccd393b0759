"""Tests of jobs that harm their process, can't be read or return nonsense: dead letters, and the worker lives."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from jobqueue.ids import new_id
from jobqueue.records import Draft
from tests.app.worker_jobs import USELESS, heed_async, note_run, poison, poison_async, tick, useless
from tests.app.worker_jobs_broken import UNSTORABLE, boast
from tests.worker.harness import until

#: How each attempt ends, and what its words hold.
POISONS = {
    "allocate": ("failed", "MemoryError"),
    "sys.exit": ("failed", "SystemExit"),
    "SystemExit": ("failed", "SystemExit"),
    "KeyboardInterrupt": ("failed", "KeyboardInterrupt"),
    "GeneratorExit": ("failed", "GeneratorExit"),
    "unspeakable": ("failed", "Unspeakable"),
    "os._exit": ("crashed", "status 3"),
    "os._exit(0)": ("crashed", "status 0"),
    "out of memory": ("crashed", "SIGKILL"),
    "segfault": ("crashed", "SIGSEGV"),
    "abort": ("crashed", "SIGABRT"),
    "forks and dies": ("crashed", "status 5"),
    "closes all files": ("crashed", ""),
    "long-winded": ("failed", "ValueError"),
    "garrulous": ("failed", "ValueError"),
}


def assert_dead(jobs, receipt, which):
    ending, words = POISONS[which]
    (dead,) = jobs.until("dead_letter", receipt)
    assert (dead.attempts, dead.crash_count) == (2, 0)
    assert dead.end_reason == ("crashed" if ending == "crashed" else "attempts used up")
    history = jobs.history(receipt)
    assert [(one.ending, one.attempt) for one in history] == [(ending, 1), (ending, 2)]
    assert all(words in f"{one.error_class} {one.message}" for one in history)


@pytest.mark.parametrize("which", POISONS)
def test_a_poisonous_job_ends_as_a_dead_letter_and_the_worker_lives(start_worker, jobs, ledger, which):
    worker = start_worker()
    receipt = poison.enqueue(which=which)
    assert_dead(jobs, receipt, which)
    assert len(ledger.entries("start", receipt.id)) == 2
    jobs.until("completed", *(note_run.enqueue(number=number) for number in range(5)))
    assert worker.stop() == 0
    # In each attempt an executor that has no files any more may get to say so before it is killed; nobody else says it.
    assert worker.output.count("Traceback") <= (2 if which == "closes all files" else 0)


@pytest.mark.parametrize("which", ["sys.exit", "KeyboardInterrupt", "os._exit"])
def test_a_poisonous_coroutine_ends_as_a_dead_letter_and_the_worker_lives(start_worker, jobs, ledger, which):
    worker = start_worker()
    assert_dead(jobs, poison_async.enqueue(which=which), which)
    ledger.open_gate("go")
    jobs.until("completed", note_run.enqueue(number=1), heed_async.enqueue(gate="go"))
    assert worker.stop() == 0


def test_an_error_without_words_is_described_all_the_same(start_worker, jobs):
    start_worker()
    receipt = poison.enqueue(which="unspeakable")
    (dead,) = jobs.until("dead_letter", receipt)
    assert "__str__ raised ValueError" in dead.error
    assert all("_raise" in one.traceback for one in jobs.history(receipt))


def test_an_error_of_thirty_megabytes_keeps_no_neighbour_waiting(start_worker, jobs, ledger):
    start_worker()
    neighbour = tick.enqueue(gate="go")
    until(lambda: ledger.entries("tick"))
    jobs.until("dead_letter", poison.enqueue(which="garrulous"), seconds=10)
    ledger.open_gate("go")
    jobs.until("completed", neighbour)
    ticks = [one["at"] for one in ledger.entries("tick")]
    assert max(later - earlier for earlier, later in pairwise(ticks)) < 2.0


def test_a_result_that_cannot_be_stored_is_a_dead_letter_at_once(start_worker, jobs, ledger):
    worker = start_worker()
    receipts = [useless.enqueue(which=which) for which in USELESS]
    for dead in jobs.until("dead_letter", *receipts):
        assert (dead.attempts, dead.end_reason, dead.result) == (1, "unusable result", None), dead.payload
        assert jobs.endings(dead.id) == ["failed"]
        assert dead.error.startswith("The result "), dead.payload
        assert len(ledger.runs(dead.id)) == 1
    jobs.until("completed", note_run.enqueue(number=1))
    assert worker.stop() == 0


def store(queue, payload, **values):
    """Store a job as another program might."""
    (receipt,) = queue.enqueue([Draft(id=new_id(), type="pick", payload=json.dumps(payload), **values)])
    queue.wake()
    return receipt


UNREADABLE = {
    "wrong type": ({"parcel": "hush-number", "colour": "hush-red"}, "parcel"),
    "wrong value": ({"parcel": 7, "colour": ["hush"]}, "colour"),
    "missing": ({"parcel": 7}, "colour"),
    "unknown field": ({"parcel": 7, "colour": "red", "hush": "hush"}, "extra"),
    "list": (["hush"], "payload"),
    "text": ("hush", "payload"),
    "null": (None, "payload"),
}


def test_a_payload_that_does_not_validate_is_a_dead_letter_at_once_and_its_values_stay_out_of_sight(
    queue, start_worker, jobs, ledger
):
    worker = start_worker()
    receipts = {which: store(queue, payload) for which, (payload, _) in UNREADABLE.items()}
    jobs.until("dead_letter", *receipts.values())
    jobs.until("completed", note_run.enqueue(number=1))
    assert worker.stop() == 0
    assert len(ledger.runs()) == 1
    assert "hush" not in worker.output
    for which, receipt in receipts.items():
        dead, (past,) = jobs.get(receipt), jobs.history(receipt)
        assert (dead.attempts, dead.end_reason, past.ending) == (1, "invalid payload", "invalid"), which
        assert "does not validate" in dead.error
        assert UNREADABLE[which][1] in past.message, which
        assert receipt.id in worker.output
        assert "hush" not in f"{dead.error} {past.message} {past.traceback} {past.error_class}", which


def test_a_payload_of_a_newer_release_goes_back_for_a_worker_that_can_read_it(queue, start_worker, jobs, ledger):
    worker = start_worker()
    receipt = store(queue, {"parcel": 7, "colour": "red", "weight": 3}, payload_version=2)
    jobs.until("completed", note_run.enqueue(number=1))
    (row,) = jobs.until("queued", receipt)
    assert (row.attempts, row.crash_count, jobs.endings(receipt)) == (0, 0, ["released"])
    assert row.scheduled_at > queue.now()
    assert ledger.runs(receipt.id) == []
    assert worker.stop() == 0


def test_poison_among_many_kills_nobody_else(start_worker, jobs, ledger):
    receipts = [note_run.enqueue(number=number) for number in range(40)]
    poisons = {which: poison.enqueue(which=which) for which in POISONS}
    receipts += [note_run.enqueue(number=number) for number in range(40)]
    worker = start_worker("--processes", "2", up=2)
    jobs.until("completed", *receipts)
    jobs.until("dead_letter", *poisons.values())
    assert {row.attempts for row in map(jobs.get, receipts)} == {1}
    for which, receipt in poisons.items():
        row = jobs.get(receipt)
        assert (row.attempts, len(jobs.history(receipt))) == (2, 2 + row.crash_count), which
    assert ledger.overlaps() == []
    assert worker.stop() == 0


def test_where_memory_runs_out_executors_go_before_their_supervisor(start_worker, alias):
    worker = start_worker("--processes", "2")
    ours = [dispensable(pid) for pid in (worker.pid, worker.zygote)]
    assert ours == [dispensable("self")] * 2
    theirs = [min(1_000, ours[0] + 500)] * 2
    until(lambda: [dispensable(pid) for pid in worker.executors] == theirs, what="both executors stand first")


def dispensable(pid):
    """How readily the kernel ends a process."""
    return int(Path(f"/proc/{pid}/oom_score_adj").read_text())


@pytest.mark.parametrize("how", ["progress", "percent", "follow-up"])
def test_what_cannot_be_stored_is_refused_where_the_handler_says_it(start_worker, jobs, ledger, how):
    """And whatever limits the handler has lifted: another process has its own."""
    worker = start_worker()
    receipts = {what: boast.enqueue(what=what, how=how) for what in UNSTORABLE}
    jobs.until("completed", *receipts.values())
    refused = {one["job"]: one["error"] for one in ledger.entries("refused")}
    expected = "InvalidOption" if how == "percent" else "PayloadRefused"
    assert {what: refused.get(receipt.id) for what, receipt in receipts.items()} == dict.fromkeys(UNSTORABLE, expected)
    assert {jobs.get(one).progress for one in receipts.values()} == {None}
    jobs.until("completed", note_run.enqueue(number=1))
    assert worker.stop() == 0
    assert "Traceback" not in worker.output


def test_a_result_that_cannot_be_stored_is_a_dead_letter_whatever_limits_the_handler_has_lifted(start_worker, jobs):
    worker = start_worker()
    receipts = [boast.enqueue(what=what, how="result") for what in UNSTORABLE]
    for dead in jobs.until("dead_letter", *receipts):
        assert (dead.attempts, dead.end_reason, dead.result) == (1, "unusable result", None), dead.payload
    jobs.until("completed", note_run.enqueue(number=1))
    assert worker.stop() == 0
