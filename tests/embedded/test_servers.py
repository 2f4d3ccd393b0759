"""Tests of a worker embedded in real web servers: one worker through forks, reloads and crashes, to the end."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.app.worker_jobs import hold, hold_once, note_run
from tests.worker.harness import is_gone, until

RUNSERVER = ("django", "runserver")
GUNICORN = ("gunicorn",)
APPLICATION = "django.core.wsgi:get_wsgi_application()"


def gunicorn(*more):
    return (APPLICATION, "--bind", "127.0.0.1:{port}", "--workers", "2", *more)


def parent(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def is_released(job):
    return (job.status, job.attempts, job.lease_owner) == ("queued", 0, None)


def test_runserver_has_one_worker_from_the_first_job_on_and_after_each_reload(serve, workers, jobs, ledger, tmp_path):
    module = tmp_path / "touched.py"
    module.touch()
    site = serve(
        *RUNSERVER,
        options=("127.0.0.1:{port}", "--skip-checks"),
        JOBQUEUE_TEST_TOUCHED="touched",
        PYTHONPATH=str(tmp_path),
        JOBQUEUE_WORKER_SHUTDOWN_GRACE="0.2",
    )
    site.until_said("development server at")
    assert workers() == []  # nothing to do, so there is none
    job, server = site.enqueue()
    jobs.until("completed", job)
    (first,) = workers()
    assert parent(first) == server
    later = module.stat().st_mtime + 10
    os.utime(module, (later, later))
    until(lambda: is_gone(first), what="the end of the first worker")
    job, again = site.enqueue()
    jobs.until("completed", job)
    (second,) = workers()
    assert again != server
    assert parent(second) == again
    held = hold.enqueue(gate="never")
    until(lambda: ledger.started(held.id))
    site.process.send_signal(signal.SIGTERM)  # which has it kill the process that serves
    site.wait()
    until(lambda: not list(site.relatives()), what="the end of all its processes")
    assert is_released(jobs.get(held))
    assert workers() == []
    assert len(ledger.runs()) == 3


@pytest.mark.parametrize("options", [("--preload",), ("--threads", "3")], ids=["preload", "threads"])
def test_gunicorn_has_one_worker_for_all_its_processes(serve, workers, jobs, ledger, options):
    backlog = note_run.enqueue(number=1)
    site = serve(*GUNICORN, options=gunicorn(*options), JOBQUEUE_WORKER_SHUTDOWN_GRACE="0.2")
    jobs.until("completed", backlog)  # and nobody has asked for a page
    (first,) = workers()
    served = parent(first)
    assert parent(served) == site.pid
    lost = hold_once.enqueue(gate="never")
    until(lambda: ledger.started(lost.id))
    os.kill(first, signal.SIGKILL)
    site.until_said("The embedded worker ended with status -9; another one follows")
    jobs.until("completed", site.enqueue()[0])
    (second,) = set(workers()) - {first}
    jobs.until("completed", lost)  # long before the end of its lease, for the death of the first is proved
    assert jobs.endings(lost) == ["crashed"]
    assert parent(second) == served
    os.kill(served, signal.SIGKILL)
    until(lambda: is_gone(second), what="the end of the worker of a process that was killed")
    jobs.until("completed", site.enqueue()[0])
    (third,) = set(workers()) - {first}
    assert parent(third) not in (served, site.pid)
    held = hold.enqueue(gate="never")
    until(lambda: ledger.started(held.id))
    assert site.stop() == 0
    assert is_released(jobs.get(held))  # by the time the server has ended
    until(lambda: not set(workers()) - {first}, what="no worker but the killed one, whose row another takes away")
    until(lambda: not list(site.relatives()), what="the end of all its processes")


LOOK = """
import threading
from django.test import Client
print(Client().get("/enqueue").status_code, [one.name for one in threading.enumerate()])
"""


def test_commands_have_none(serve, workers, jobs):
    backlog = note_run.enqueue(number=1)
    shell = serve("django", "shell", options=("-c", LOOK))
    assert shell.wait() == 0
    assert "200 ['MainThread']" in shell.output
    migrate = serve("django", "migrate")
    assert migrate.wait() == 0
    assert not [*shell.relatives(), *migrate.relatives()]
    assert workers() == []
    assert jobs.get(backlog).status == "queued"
