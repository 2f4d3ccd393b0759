"""Tests of terminal escapes in outsiders' text: neither commands nor the log print them."""

from __future__ import annotations

import json
import logging
import shlex
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobqueue.cli.reason_text import Scene, reasons
from jobqueue.models import Job
from jobqueue.observe.logs import JsonFormatter, PlainFormatter, write
from jobqueue.observe.terminal_safe import harmless, one_line, spelled_out
from jobqueue.records import Event, EventKind, JobRecord, PauseRecord, Scope
from jobqueue.testing.clock import NOON
from jobqueue.testing.contract.harness import put, take_one
from tests.app.worker_jobs import note_run
from tests.attacks.test_markup import hostile_job

STEERING = "\x1b[2J\x1b]0;owned\x07\r\x9b31m\x7f\u202e\u2066\u061c\u200f\u2028\u2029\x85\x08"
FORGED = "ok: 0 jobs queued"
STEERERS = {one for one in STEERING if not one.isprintable()} | set(
    map(chr, [*range(9), *range(11, 32), *range(127, 160)])
)
HOSTILE = f"a{STEERING}\n{FORGED}\n"
TYPES = frozenset({HOSTILE})


def steering_in(text):
    return sorted(set(text) & STEERERS)


@pytest.fixture
def attacked(queue, alias, worker):
    """A dead letter, a running job and a queued one, a pause and a worker, all of hostile names."""
    dead = hostile_job(queue, HOSTILE)
    Job.objects.using(alias).filter(pk=dead).update(result=HOSTILE, progress=HOSTILE, context={HOSTILE: HOSTILE})
    running = put(queue, HOSTILE, queue="other")
    assert take_one(queue, owner=HOSTILE, types=TYPES).id == running
    queued = put(queue, HOSTILE, queue=HOSTILE, tenant=HOSTILE, unique_key=HOSTILE)
    queue.operator.pause(Scope.QUEUE, HOSTILE, HOSTILE)
    queue.operator.pause(Scope.TYPE, HOSTILE, HOSTILE)
    worker(HOSTILE, host=HOSTILE, queues=(HOSTILE,), types=(HOSTILE,))
    return dead, running, queued


def test_no_command_hands_on_what_steers_a_terminal(attacked, run, queue):
    dead, running, _ = attacked
    commands = [["status"], ["list"], ["workers"], ["retry", HOSTILE, running], ["cancel", dead, HOSTILE]]
    commands += [["show", one, *reveal] for one in attacked for reveal in ([], ["--reveal"])]
    commands += [["why", one] for one in attacked] + [["show", HOSTILE], ["why", HOSTILE]]
    commands += [["pause", "--queue", HOSTILE], ["resume", "--type", HOSTILE], ["enqueue", HOSTILE]]
    commands += [["enqueue", "note_run", HOSTILE], ["enqueue", "note_run", json.dumps({HOSTILE: 1})]]
    commands += [["enqueue", "note_run", "{}", "--unique-key", "k"], ["purge", "--type", HOSTILE, "--yes"]]
    for words in commands:
        for extra in ([], ["--json"]):
            said = run(*words, *extra)
            assert steering_in(said.out) == [], words
            assert steering_in(said.err) == [], words
            # Not a word of it is at the beginning of a line, but for texts that are shown with their line ends.
            if words[0] != "show":
                assert not any(line.startswith(FORGED) for line in f"{said.out}\n{said.err}".splitlines()), words


def test_a_name_cannot_write_a_line_among_a_jobs_columns(attacked, run):
    _, running, _ = attacked
    columns = run("show", running).out.split("\n\n")[0].splitlines()
    assert [line.split()[0] for line in columns].count("type") == 1
    assert not any(line.startswith(FORGED) for line in columns)


NAMES = ["x; rm -rf ~", "$(id)", "`id`", "a b", "'", "--settings=evil", "-v", "a\nb", "|| id", "-"]


@pytest.mark.parametrize("name", NAMES)
def test_a_command_to_be_pasted_holds_names_as_one_word(name):
    values = {"scheduled_at": NOON, "payload": None, "payload_version": 1, "attempts": 1, "max_retries": 3, "fence": 1}
    values |= {"type": name, "queue": name, "priority": 5, "created_at": NOON, "updated_at": NOON}
    for status in ("queued", "dead_letter", "failed"):
        job = JobRecord(id=name, status=status, **values)
        for pauses in ((), (PauseRecord(Scope.QUEUE, name, "", NOON), PauseRecord(Scope.TYPE, name, "", NOON))):
            scene = Scene(now=NOON, job=job, pauses=pauses, workers=(), known_types=frozenset(), ahead=0)
            for one in reasons(scene):
                words = shlex.split(one.command)
                given = [word for word in words[3:] if name in word and word != "--"]
                assert "rm" not in words
                assert all(word in (name, f"--queue={name}", f"--type={name}") for word in given)
                assert not name.startswith("-") or name not in words or words[words.index(name) - 1] == "--"


class Refusing(Exception):
    def __str__(self):
        return HOSTILE


def formatted(formatter, *args, **values):
    record = logging.makeLogRecord({"name": "jobqueue", "msg": "%s", "args": args, **values})
    return formatter.format(record)


def test_no_line_of_the_log_steers_a_terminal_in_either_form():
    try:
        raise Refusing
    except Refusing:
        trouble = sys.exc_info()
    for formatter in (PlainFormatter("%(message)s"), JsonFormatter()):
        text = formatted(formatter, HOSTILE, exc_info=trouble, job_type=HOSTILE)
        assert steering_in(text) == []
        assert "owned" in text
    read = json.loads(formatted(JsonFormatter(), HOSTILE, job_type=HOSTILE))
    assert (read["message"], read["job_type"]) == (HOSTILE, HOSTILE)


@pytest.mark.parametrize("kind", EventKind)
def test_no_event_writes_a_line_of_its_own(kind, caplog):
    with caplog.at_level("DEBUG", "jobqueue"):
        write(Event(kind, HOSTILE, HOSTILE, HOSTILE, reason=HOSTILE, error_class=HOSTILE, error=HOSTILE))
    (message,) = caplog.messages
    assert steering_in(message) == []
    assert "\n" not in message


@given(st.text())
def test_what_is_taken_out_is_only_what_steers(text):
    assert steering_in(harmless(text)) == []
    assert len(one_line(text).splitlines()) <= 1
    assert json.loads(spelled_out(json.dumps(text, ensure_ascii=False))) == text
    assert harmless(harmless(text)) == harmless(text)


def test_a_workers_log_holds_no_escape_that_an_error_or_a_row_has_brought(start_worker, jobs, queue, sql):
    worker = start_worker("-v", "2", environment={"NO_COLOR": "1"})
    receipt = note_run.enqueue(number=1)
    jobs.until("completed", receipt)
    bad = put(queue, "shout", payload=json.dumps({"text": HOSTILE}), queue=HOSTILE, max_retries=1)
    queue.wake()
    (dead,) = jobs.until("dead_letter", bad)
    assert HOSTILE in dead.error
    assert worker.stop() == 0
    assert steering_in(worker.output) == []
    assert bad in worker.output
    assert not any(line.startswith(FORGED) for line in worker.output.splitlines())
