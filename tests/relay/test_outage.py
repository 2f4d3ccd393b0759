"""Tests of a shared database that fails and recovers, with real processes: all jobs arrive once, in order."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal

import pytest
from django.core.management import call_command
from django.db import connections

import jobqueue
from jobqueue.models import Job
from jobqueue.relay.intake import Intake
from jobqueue.relay.outbox import Outbox
from tests.app.worker_jobs import note_run
from tests.worker.harness import WorkerProcess, database_of, until

pytestmark = pytest.mark.postgres


@pytest.fixture
def start_relay(to_a_server_of_its_own, ledger, tmp_path):
    """A function that starts a worker that relays; what it leaves is killed after the test."""
    started = []

    def start():
        relay = WorkerProcess(
            "default",
            ledger.folder,
            tmp_path / f"relay-{len(started)}.log",
            *("--heartbeat", str(tmp_path / "heartbeat")),
            jobqueue={"RELAY_TO": "far"},
            databases={"far": database_of("far")},
        )
        started.append(relay)
        relay.until_said("relaying from default to far")
        return relay

    yield start
    for relay in started:
        relay.destroy()


def enqueue(count):
    return [note_run.enqueue(number=number).id for number in range(count)]


def status(capsys):
    capsys.readouterr()
    with contextlib.suppress(SystemExit):
        call_command("jobqueue", "status", "--json")
    return json.loads(capsys.readouterr().out)["outbox"]


def test_jobs_wait_while_the_server_is_away_and_arrive_when_it_is_back(
    to_a_server_of_its_own, start_relay, server, ledger, capsys, tmp_path
):
    ways, heartbeat = to_a_server_of_its_own, tmp_path / "heartbeat"
    relay = start_relay()
    first = enqueue(3)
    until(lambda: ways.arrived() == first)
    connections["far"].close()
    server.stop("immediate")
    try:
        second = enqueue(3)
        relay.until_said("The database 'far' is out of reach")
        until(lambda: status(capsys)["lost_at"])
        until(lambda: heartbeat.read_text() == "not ready: the shared database is out of reach\n")
        relay.process.send_signal(signal.SIGKILL)  # and the relay dies too
        relay.wait()
        relay = start_relay()
        relay.until_said("The database 'far' is out of reach")
        third = enqueue(3)
        assert status(capsys)["count"] == 6
        assert [one.status for one in map(jobqueue.get, second)] == ["queued"] * 3
    finally:
        server.start()
    until(lambda: ways.arrived() == first + second + third)
    until(lambda: status(capsys)["count"] == 0)
    until(lambda: heartbeat.read_text() == "ready\n")
    assert status(capsys)["lost_at"] is None
    assert relay.output.count("out of reach") == relay.output.count("is back") == 1
    assert Job.objects.using("far").count() == 9
    assert ledger.runs() == []  # nobody has run them here
    os.kill(relay.pid, signal.SIGTERM)
    assert relay.wait() == 0
    assert not heartbeat.exists()
    assert "Traceback" not in relay.output


def test_a_server_that_dies_within_a_batch_has_it_once(to_a_server_of_its_own, server, monkeypatch):
    ways = to_a_server_of_its_own
    first = enqueue(3)

    def dying(verb):
        def die(*args):
            answer = verb(*args)
            server.stop("immediate")
            return answer

        return die

    with monkeypatch.context() as patch:
        patch.setattr(Intake, "_store", dying(Intake._store))  # stored, and not committed
        assert ways.relay() == 1
    server.start()
    assert ways.arrived() == []
    assert {status for _, status in ways.waiting()} == {"in_progress"}
    with monkeypatch.context() as patch:
        patch.setattr(Outbox, "asked_to_stop", dying(Outbox.asked_to_stop))  # committed, and not closed
        assert ways.relay() == 0
    assert ways.waiting() == []
    connections["far"].close()
    server.start()
    assert ways.arrived() == first


@pytest.fixture
def log():
    """The log of the package, put back as it was after a command has spoken in this process."""
    logger = logging.getLogger("jobqueue")
    before, level = list(logger.handlers), logger.level
    yield
    logger.handlers[:], logger.level = before, level


def test_relay_once_says_what_is_left(to_a_server_of_its_own, server, capsys, log):
    ways = to_a_server_of_its_own
    (waits,) = enqueue(1)
    connections["far"].close()
    server.stop("fast")
    try:
        with pytest.raises(SystemExit) as ended:
            call_command("jobqueue", "relay", "--once")
        assert ended.value.code == 1
        assert "out of reach" in capsys.readouterr().out
    finally:
        server.start()
    call_command("jobqueue", "relay", "--once")
    assert ways.arrived() == [waits]
