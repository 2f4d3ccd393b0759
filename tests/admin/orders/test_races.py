"""Tests of orders under races: two answers at once, a stop while it runs, workers that are killed midway."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest
from django.db import connections

from jobqueue.clock import SYSTEM
from jobqueue.models import Job, Order, OrderedJob
from jobqueue.orders import Instruction, confirmation
from jobqueue.orders.execution import next_batch
from jobqueue.orders.selection import ask, collect
from jobqueue.records import Filter
from jobqueue.states import JobStatus
from jobqueue.testing.contract.harness import draft, put_all
from tests.worker.conftest import jobs, ledger, start_worker
from tests.worker.harness import database_of, until
from tests.worker.test_proved_deaths import kill_all

__all__ = ["jobs", "ledger", "start_worker"]

DEAD = Filter(statuses=frozenset({JobStatus.DEAD_LETTER}))
AT_ONCE = 8


@pytest.fixture
def asked(queue, operator):
    """A function that counts an order for dead letters, and returns it with the instruction that confirms it."""

    def make(verb, count):
        ids = put_all(queue, *(draft() for _ in range(count)))
        then = SYSTEM.now() - timedelta(minutes=5)
        Job.objects.using(queue.alias).filter(pk__in=ids).update(status="dead_letter", completed_at=then)
        who = {"user_id": str(operator.user.pk), "user_name": operator.user.username, "of_staff": True}
        given = Instruction(verb=verb, **who)
        return collect(ask(given, DEAD, "/admin/"), 60), given

    return make


def together(call, count=AT_ONCE):
    """Call a function in several threads at the same moment; return what it returned in each."""
    barrier = Barrier(count)

    def one(_number):
        barrier.wait(10)
        try:
            return call()
        finally:
            for connection in connections.all(initialized_only=True):
                connection.close()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


def test_of_several_answers_at_once_one_counts(queue, asked):
    order, given = asked("purge", 3)
    took = together(lambda: confirmation.confirm(Order.objects.using(queue.alias).get(), given, "Purge 3 jobs"))
    assert sorted(took) == [False] * (AT_ONCE - 1) + [True]
    (found,) = Job.objects.using(queue.alias).filter(type="jobqueue.operate")
    assert Order.objects.using(queue.alias).get(pk=order.pk).job_id == found.pk


def test_batches_at_once_do_nothing_twice(queue, asked):
    order, given = asked("retry", 30)
    assert confirmation.confirm(order, given, "Retry 30 jobs")
    states = {one.state for one in together(lambda: next_batch(order.pk))}
    assert states <= {"running", "done"}
    order.refresh_from_db()
    assert (order.state, order.done, order.left_alone) == ("done", 30, 0)
    assert OrderedJob.objects.using(queue.alias).filter(order=order.pk).count() == 30


def test_a_purge_whose_workers_are_killed_deletes_what_it_announced_and_accounts_for_it(
    queue, alias, asked, monkeypatch, jobs, start_worker
):
    monkeypatch.setattr(confirmation, "DELAY", timedelta(0))
    kept = put_all(queue, *(draft() for _ in range(5)))
    order, given = asked("purge", 300)
    assert confirmation.confirm(order, given, "Purge 300 jobs")
    rows = Order.objects.using(alias).filter(pk=order.pk)

    def start():
        return start_worker(
            "--skip-checks",
            *("--type", "jobqueue.operate"),
            settings="tests.admin.worker_settings",
            jobqueue={"DATABASE": alias},
            environment={"JOBQUEUE_TEST_APPLICATION": json.dumps({"database": database_of("default")})},
            constants={"jobqueue.orders.execution.BATCH": 5},
        )

    for part in (1, 100):
        worker = start()
        until(lambda part=part: rows.get().done >= part, what="a part of the purge")
        kill_all(worker)
        now = rows.get()
        left = Job.objects.using(alias).filter(status="dead_letter").count()
        assert now.done + left == 300
    start()
    jobs.until("completed", rows.get().job_id, seconds=60)
    assert (rows.get().state, rows.get().done, rows.get().left_alone) == ("done", 300, 0)
    assert set(Job.objects.using(alias).values_list("pk", flat=True)) == {*kept, rows.get().job_id}
