"""Tests of ``--heartbeat``: a probe reads from a file whether the worker is alive and ready."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
from contextlib import closing

import pytest
from django.db import connections

from jobqueue.errors import InvalidOption
from jobqueue.worker import heartbeat_file
from jobqueue.worker.heartbeat_file import HeartbeatFile, prepare
from tests.app.worker_jobs_b import nap
from tests.conftest import ON_SQLITE
from tests.worker.harness import freeze, until

OLD = 1_000_000_000


def age(path, seconds=OLD):
    """Set the file's time far back, so that the next beat shows."""
    os.utime(path, (seconds, seconds))


def is_young(path):
    return path.stat().st_mtime > OLD


def probe(path, line):
    """Run a line of the documentation as a probe does."""
    return subprocess.run(["sh", "-c", line.replace("PATH_OF_FILE", str(path))], check=False).returncode == 0


ALIVE = "test $(( $(date +%s) - $(stat -c %Y PATH_OF_FILE) )) -lt 30"
READY = f"grep -q ^ready PATH_OF_FILE && {ALIVE}"


@ON_SQLITE
def test_the_file_is_young_while_the_worker_lives_and_gone_when_it_has_stopped(start_worker, tmp_path):
    path = tmp_path / "heartbeat"
    worker = start_worker("--heartbeat", str(path))
    until(lambda: path.exists() and path.read_text() == "ready\n", what="a ready worker")
    assert probe(path, ALIVE)
    assert probe(path, READY)
    age(path)
    assert not probe(path, ALIVE)
    until(lambda: is_young(path), what="another beat")
    assert worker.stop() == 0
    assert list(tmp_path.glob("heartbeat*")) == []


@ON_SQLITE
def test_the_file_of_a_killed_worker_ages_and_its_successor_replaces_it(start_worker, tmp_path):
    path = tmp_path / "heartbeat"
    first = start_worker("--heartbeat", str(path))
    until(path.exists, what="a heartbeat")
    freeze(first.pid)
    age(path)
    assert path.read_text() == "ready\n"
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    assert not is_young(path)
    start_worker("--heartbeat", str(path))
    until(lambda: path.exists() and is_young(path), what="the heartbeat of another worker")


@ON_SQLITE
def test_a_worker_that_stops_is_alive_and_not_ready(start_worker, queue, ledger, tmp_path):
    path = tmp_path / "heartbeat"
    worker = start_worker("--heartbeat", str(path), "--shutdown-grace", "30")
    nap.enqueue(seconds=60)
    until(lambda: [one.busy for one in queue.workers.all()] and queue.outstanding.running(1), what="a running job")
    os.kill(worker.pid, signal.SIGTERM)
    until(lambda: path.read_text() == "not ready: the worker is stopping\n", what="a stopping worker")
    assert (probe(path, ALIVE), probe(path, READY)) == (True, False)
    os.kill(worker.pid, signal.SIGTERM)
    assert worker.wait() == 0
    assert not path.exists()


@ON_SQLITE
def test_a_database_out_of_reach_is_not_ready_but_alive(start_worker, alias, tmp_path):
    path = tmp_path / "heartbeat"
    start_worker("--heartbeat", str(path), "--poll-interval", "0.05")
    until(path.exists, what="a heartbeat")
    name = connections[alias].settings_dict["NAME"]
    with closing(sqlite3.connect(name, isolation_level=None)) as raw:
        raw.execute("ALTER TABLE job_queue RENAME TO job_queue_gone")
        try:
            until(lambda: path.read_text() == "not ready: the database is out of reach\n", what="a lost database")
            assert probe(path, ALIVE)
        finally:
            raw.execute("ALTER TABLE job_queue_gone RENAME TO job_queue")
    until(lambda: path.read_text() == "ready\n", what="a database that is back")


@ON_SQLITE
def test_a_path_that_cannot_be_written_ends_the_worker_at_once(start_worker, tmp_path):
    worker = start_worker("--heartbeat", str(tmp_path / "no" / "heartbeat"), up=0)
    assert worker.wait() != 0
    assert worker.output.startswith("CommandError: --heartbeat cannot be written: ")
    assert len(worker.output.splitlines()) == 1


def test_what_is_no_file_is_refused_and_left(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    (tmp_path / "link").symlink_to(tmp_path / "target")
    for path in (tmp_path, fifo, tmp_path / "link", "/dev/null"):
        with pytest.raises(InvalidOption, match="must be the path of a file"):
            prepare(str(path))
    assert fifo.exists()
    with pytest.raises(InvalidOption, match="cannot be"):
        prepare("nul\0l")


def test_a_file_that_vanishes_or_cannot_be_written_never_ends_the_loop(tmp_path, monkeypatch, caplog):
    (tmp_path / "there").mkdir()
    path, why = tmp_path / "there" / "heartbeat", [""]
    file = HeartbeatFile(str(path), lambda: why[0])
    file.act()
    path.unlink()
    file.due = 0.0
    file.act()
    assert path.read_text() == "ready\n"
    age(path)
    file.act()
    assert not is_young(path)  # it is not due, and nothing has changed
    why[0] = "trouble"
    file.act()
    assert path.read_text() == "not ready: trouble\n"
    path.unlink()
    (tmp_path / "there").rmdir()
    for _ in range(3):
        file.due = 0.0
        file.act()
    assert [one.message.partition(":")[0] for one in caplog.records] == [
        f"The heartbeat file {path} can't be written, so probes will fail"
    ]
    (tmp_path / "there").mkdir()
    file.due = 0.0
    file.act()
    assert path.read_text() == "not ready: trouble\n"
    assert heartbeat_file.EVERY < 30
