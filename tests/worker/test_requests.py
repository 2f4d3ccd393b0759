"""Tests of what operators ask of a running worker: to take no more jobs, to take jobs again, to stop."""

from __future__ import annotations

import pytest
from django.db import DatabaseError, connections

from jobqueue import control
from jobqueue.models import Worker
from jobqueue.records import WorkerRequest
from tests.app.worker_jobs import hold, note_run
from tests.worker.harness import until

OFTEN = {"jobqueue.worker.supervisor.duties.heartbeat.Heartbeat.every": 0.2}
NONSENSE = ["'nonsense'", "''", "'QUIET'", "NULL", "'stop '"]


def only(queue):
    (found,) = queue.workers.all()
    return found


def test_a_quiet_worker_ends_what_it_has_and_takes_nothing_until_it_is_resumed(queue, start_worker, jobs, ledger):
    running = hold.enqueue(gate="go")
    worker = start_worker(constants=OFTEN)
    until(lambda: ledger.started(running.id))
    assert control.ask_worker(only(queue).owner, WorkerRequest.QUIET)
    until(lambda: only(queue).state == "quiet")
    waiting = note_run.enqueue(number=1)
    ledger.open_gate("go")
    until(lambda: jobs.get(running).status == "completed")
    until(lambda: only(queue).busy == 0)
    assert jobs.get(waiting).status == "queued"
    assert control.ask_worker(only(queue).owner, None)
    until(lambda: jobs.get(waiting).status == "completed")
    assert only(queue).state == "running"
    assert "take no more jobs until it is resumed" in worker.output
    assert worker.stop() == 0


def test_a_worker_that_is_asked_to_stop_ends_as_after_a_signal(queue, start_worker, jobs, ledger):
    quick, slow = hold.enqueue(gate="quick"), hold.enqueue(gate="never")
    worker = start_worker("--shutdown-grace", "1", constants=OFTEN)
    until(lambda: ledger.started(quick.id, slow.id))
    assert control.ask_worker(only(queue).owner, WorkerRequest.STOP)
    worker.until_said("Stopping")
    ledger.open_gate("quick")
    assert worker.wait() == 0
    assert [jobs.get(one).status for one in (quick, slow)] == ["completed", "queued"]
    assert queue.workers.all() == []


def test_a_quiet_worker_can_be_stopped_and_one_that_starts_anew_is_asked_nothing(queue, start_worker, jobs):
    worker = start_worker(constants=OFTEN)
    owner = only(queue).owner
    assert control.ask_worker(owner, WorkerRequest.QUIET)
    until(lambda: only(queue).state == "quiet")
    assert control.ask_worker(owner, WorkerRequest.STOP)
    assert worker.wait() == 0
    receipt = note_run.enqueue(number=1)
    start_worker(constants=OFTEN)
    until(lambda: jobs.get(receipt).status == "completed")


def test_what_another_program_asks_is_no_request(queue, alias, start_worker, jobs):
    start_worker(constants=OFTEN)
    hostile = [*NONSENSE, "CAST(x'61ff' AS TEXT)"] if connections[alias].vendor == "sqlite" else NONSENSE
    for said in hostile:
        with connections[alias].cursor() as cursor:
            cursor.execute(f"UPDATE job_queue_worker SET asked = {said}")
        before = only(queue)
        assert before.asked is None
        until(lambda seen=before.seen_at: only(queue).seen_at > seen)
        receipt = note_run.enqueue(number=1)
        until(lambda one=receipt: jobs.get(one).status == "completed")
        assert only(queue).state == "running"


@pytest.mark.sqlite
@pytest.mark.parametrize("alias", ["default"], indirect=True)
@pytest.mark.parametrize("said", ["x'00'"])
def test_no_other_type_gets_into_the_column(queue, alias, said):
    assert Worker.objects.using(alias).count() == 0
    with connections[alias].cursor() as cursor, pytest.raises(DatabaseError):
        cursor.execute(
            "INSERT INTO job_queue_worker (owner, name, host, pid, version, state, started_at, seen_at, processes, "
            "slots, busy, types, asked) VALUES ('a', 'a', 'a', 1, '1', 'running', '2026-01-01T00:00:00.000000Z', "
            f"'2026-01-01T00:00:00.000000Z', 1, 1, 1, '[]', {said})"
        )
