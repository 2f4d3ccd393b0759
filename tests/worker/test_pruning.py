"""Tests of retention in a worker: jobs that ended long ago go, in small steps, beside running jobs."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobqueue import retention
from jobqueue.backends.memory import MemoryBackend
from jobqueue.models import Attempt, Duty, Job
from jobqueue.policy.retention import Rule
from jobqueue.states import JobStatus
from jobqueue.testing.contract.harness import finish, put, take
from jobqueue.worker.supervisor.duties import prune
from jobqueue.worker.supervisor.duties.prune import BUSY_PAUSE, IDLE_PAUSE, Prune
from tests.app.worker_jobs import note_run
from tests.worker.harness import until


class Context:
    """The part of a worker's context that the duty uses."""

    def __init__(self, clock):
        self.backend = MemoryBackend(clock=clock)
        self.claims = []


@pytest.fixture
def context(clock, monkeypatch):
    monkeypatch.setattr(retention, "rules", lambda: (Rule(JobStatus.COMPLETED, keep=timedelta(0)),))
    made = Context(clock)
    for _ in range(70):
        put(made.backend)
    for claim in take(made.backend, 70):
        finish(made.backend, claim)
    clock.advance(1)
    return made


def test_a_worker_prunes_what_its_rules_do_not_keep(queue, alias, start_worker):
    old = [note_run.enqueue(number=number).id for number in range(3)]
    worker = start_worker()
    done = Job.objects.using(alias).filter(status="completed")
    until(lambda: done.count() == 3)
    assert worker.stop() == 0
    Job.objects.using(alias).filter(pk__in=old[:2]).update(
        completed_at=queue.now() - timedelta(days=8), created_at=queue.now() - timedelta(days=9)
    )
    Duty.objects.using(alias).all().delete()  # otherwise it is the first worker's turn for a minute
    start_worker(jobqueue={"RETENTION": [{"status": "completed", "keep_last": 1}]})
    until(lambda: done.count() == 1)
    assert [one.pk for one in done] == [old[2]]
    assert Attempt.objects.using(alias).count() == 0


@pytest.mark.parametrize(("running", "factor"), [([], IDLE_PAUSE), (["a job"], BUSY_PAUSE)], ids=["idle", "busy"])
def test_after_a_step_the_worker_does_other_things_for_longer(context, monkeypatch, running, factor):
    moments = iter([10.0, 10.002])
    clock = type("Clock", (), {"monotonic": staticmethod(lambda: next(moments))})
    monkeypatch.setattr(prune, "SYSTEM", clock)
    context.claims = running
    assert Prune(context).act() == pytest.approx(0.002 * factor)


def test_after_a_walk_a_worker_waits_before_it_reads_the_table_again(context):
    duty = Prune(context)
    assert duty.act() < 1
    for _ in range(2):
        assert 50 < duty.act() <= 60
    assert context.backend.retention.walk(None, 9) == ([], None)


def test_space_is_given_back_while_nothing_runs(context, monkeypatch):
    more = [True, True, False]
    monkeypatch.setattr(context.backend.retention, "compact", lambda: more.pop(0))
    duty = Prune(context)
    duty.act()
    context.claims = ["a job"]
    assert duty.act() > 50
    context.claims = []
    assert [duty.act() < 1 for _ in range(3)] == [True, True, False]
