"""Tests of executors that send invalid messages: each is killed and replaced, without harm to others."""

from __future__ import annotations

import json
from struct import pack

import pytest

from tests.app.worker_jobs import note_run
from tests.app.worker_jobs_broken import ID as PLACE_OF_ID
from tests.app.worker_jobs_broken import begin_a_message, speak
from tests.conftest import ON_SQLITE
from tests.worker.harness import children

ID = PLACE_OF_ID.decode()


def speaking(folder, words):
    """Enqueue a job that has its executor say something."""
    file = folder / f"{abs(hash(words))}.words"
    file.write_bytes(words)
    return speak.enqueue(file=str(file))


def message(content):
    """Frame bytes, text, or what is to be JSON."""
    text = content if isinstance(content, (bytes, str)) else json.dumps(content)
    body = text if isinstance(text, bytes) else text.encode()
    return pack("!I", len(body)) + body


def outcome(*row, kind="settled"):
    return message(["outcomes", [[kind, ID, 7777, *row]]])


def completion(*row):
    return outcome(*row, kind="completed")


def stored(*row):
    return outcome(*row, kind="stored")


DEEP = "[" * 200_000 + "]" * 200_000
DIGITS = "9" * 200_000
FAILURE = {"ending": "failed", "error_class": "E", "message": "m", "traceback": "t", "fingerprint": "f", "duration": 1}
CHILD = {
    "id": "01ARZ3NDEKTSV4RRFFQ69G5FAV", "type": "note_run", "payload": "{}", "payload_version": 1, "queue": "default",
    "priority": 5, "max_retries": 3, "delay": 0, "scheduled_at": None, "expires_at": None, "timeout": None,
    "idempotency_key": None, "unique_key": None, "tenant": None, "workspace": None, "parent_id": ID, "context": None,
}  # fmt: skip


def failing(**changes):
    return outcome(None, "retry", 0, None, FAILURE | changes, [], None)


def following(**changes):
    return outcome(None, "complete", None, None, None, [CHILD | changes], None)


#: What each says, and how the log begins to tell of it.
SAID = {
    "junk": b"\xde\xad\xbe\xef" * 30,
    "four times 0xff": b"\xff\xff\xff\xff",
    "too long": pack("!I", 1 << 30),
    "no JSON": message("nonsense"),
    "no text": message(b'["outcomes", "\xff\xfe"]'),
    "too deep": message(DEEP),
    "too deep in its place": message(f'["outcomes", {DEEP}]'),
    "too many digits": message(f'["outcomes", {DIGITS}]'),
    "no number": completion(float("nan")),
    "no message": message(7),
    "no pair": message(["outcomes"]),
    "an object": message({"a": 1, "b": 2}),
    "no word": message([{}, []]),
    "an unknown word": message(["sing", []]),
    "a supervisor's word": message(["exit", None]),
    "no content": message(["ready", None]),
    "no list": message(["outcomes", 7]),
    "no rows": message(["outcomes", [7]]),
    "an empty row": message(["outcomes", [[]]]),
    "a row of another length": completion(1, 2, 3),
    "an unknown kind": outcome(None, kind="sold"),
    "a name that is none": message(["outcomes", [["completed", [ID], 7777, None]]]),
    "another claim": message(["outcomes", [["completed", "01ARZ3NDEKTSV4RRFFQ69G5FAV", 7777, None]]]),
    "another fence": message(["outcomes", [["completed", ID, 77770, None]]]),
    "a result that is no text": completion({"a": 1}),
    "half a character": completion('"\ud800"'),
    "too much of a result": completion('"' + "x" * 300_000 + '"'),
    "stored, and no list": stored(7),
    "stored, and no names": stored([[1, 2, 3, 4]]),
    "an unknown move": outcome(None, "jump", None, None, None, [], None),
    "a move of others": outcome(None, "claim", None, None, FAILURE, [], None),
    "a failure without one": outcome(None, "retry", 0, None, None, [], None),
    "an endless delay": outcome(None, "retry", 1e300, None, FAILURE, [], None),
    "infinitely late": message(
        f'["outcomes", [["settled", "{ID}", 7777, null, "retry", 1e999, null, {json.dumps(FAILURE)}, [], null]]]'
    ),
    "a reason that is no text": outcome(None, "bury", None, 7, FAILURE, [], None),
    "a long reason": outcome(None, "bury", None, "x" * 200, FAILURE, [], None),
    "a failure of another shape": outcome(None, "retry", 0, None, {"a": 1}, [], None),
    "an unknown ending": failing(ending="married"),
    "words that are none": failing(message=[7]),
    "a long fingerprint": failing(fingerprint="x" * 500),
    "a negative time": failing(duration=-5),
    "a child that is none": outcome(None, "complete", None, None, None, [7], None),
    "a child of a failure": outcome(None, "retry", 0, None, FAILURE, [CHILD], None),
    "a child without a name": following(id=None),
    "a child of another name": following(id="../../x"),
    "a child with a field too many": following(colour="red"),
    "a child of no type": following(type=7),
    "a child in a long queue": following(queue="q" * 300),
    "a child in a hurry": following(priority=10**30),
    "a child of a version beyond": following(payload_version=10**30),
    "a child tried without end": following(max_retries=10**30),
    "a child with half a payload": following(payload="{"),
    "a child with a deep payload": following(payload=DEEP),
    "a child with a long number": following(payload=DIGITS),
    "a child of no time": following(scheduled_at="tomorrow"),
    "a child of another parent": following(parent_id="01ARZ3NDEKTSV4RRFFQ69G5FAV"),
    "a child with half a character": following(tenant="\ud800"),
    "progress of no shape": message(["progress", [[1]]]),
    "progress that is no text": message(["progress", [[ID, 7777, 7]]]),
    "progress that is no JSON": message(["progress", [[ID, 7777, "{"]]]),
    "deep progress": message(["progress", [[ID, 7777, DEEP]]]),
    "progress of many digits": message(["progress", [[ID, 7777, f'{{"n": {DIGITS}}}']]]),
    "progress without end": message(["progress", [[ID, 7777, '{"n": 1e999}']]]),
    "progress of half a character": message(["progress", [[ID, 7777, '{"n": "\\ud800"}']]]),
    "progress with a NUL": message(["progress", [[ID, 7777, '{"n": "\\u0000"}']]]),
    "a last report that is no JSON": outcome(None, "complete", None, None, None, [], "{"),
    "a last report of many digits": outcome(None, "complete", None, None, None, [], f'{{"n": {DIGITS}}}'),
}


def settled_as_a_crash(jobs, receipt):
    row = jobs.get(receipt)
    history = jobs.history(receipt)
    return (
        row.status == "dead_letter"
        and row.end_reason == "crashed"
        and [one.ending for one in history]
        == [
            "crashed",
            "crashed",
        ]
    )


@pytest.mark.parametrize("processes", ["1", "0"], ids=["process", "thread"])
def test_what_no_executor_says_ends_it_and_nobody_else(start_worker, jobs, tmp_path, processes):
    """One after another: a worker that outlives one of them is to outlive the next."""
    worker = start_worker("--processes", processes, apps=("tests.worker.unlimited",), up=int(processes) or None)
    for what, words in SAID.items():
        receipt = speaking(tmp_path, words)
        jobs.until("dead_letter", receipt)
        assert settled_as_a_crash(jobs, receipt), what
        assert "sent an invalid message" in jobs.history(receipt)[0].message, what
    assert worker.output.count("sent an invalid message") >= 2 * len(SAID)
    jobs.until("completed", note_run.enqueue(number=1))
    assert "Traceback" not in worker.output
    assert worker.stop() == 0


def test_the_log_names_the_executor_and_what_it_said(start_worker, jobs, tmp_path):
    worker = start_worker()
    (executor,) = worker.executors
    receipt = speaking(tmp_path, b"\xff\xff\xff\xff")
    jobs.until("dead_letter", receipt)
    assert f"Executor {executor} sent an invalid message: a message of 4,294,967,295 bytes" in worker.output
    jobs.until("completed", note_run.enqueue(number=1))
    assert worker.stop() == 0


def test_neighbours_of_an_executor_that_is_ended_for_what_it_said_keep_their_attempts(
    start_worker, jobs, ledger, tmp_path
):
    worker = start_worker()
    receipts = [note_run.enqueue(number=number) for number in range(10)]
    receipt = speaking(tmp_path, b"\xff\xff\xff\xff")
    receipts += [note_run.enqueue(number=number) for number in range(10)]
    jobs.until("completed", *receipts)
    jobs.until("dead_letter", receipt)
    assert {row.attempts for row in map(jobs.get, receipts)} == {1}
    assert ledger.overlaps() == []
    assert worker.stop() == 0


@ON_SQLITE
def test_an_executor_whose_message_does_not_end_gets_no_more_jobs_and_is_replaced(start_worker, jobs):
    worker = start_worker("--stop-grace", "0.5", constants={"jobqueue.worker.supervisor.outcomes.LONGEST_MESSAGE": 0.5})
    (executor,) = worker.executors
    first = begin_a_message.using(timeout=1).enqueue()
    worker.until_said(f"Executor {executor} has not completed a message")
    jobs.until("completed", note_run.enqueue(number=1))
    assert executor not in children(worker.zygote) or jobs.get(first).status == "in_progress"
    jobs.until("dead_letter", first)
    assert jobs.endings(first) == ["timed_out", "timed_out"]
    assert worker.stop() == 0
