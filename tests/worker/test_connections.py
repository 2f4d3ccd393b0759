"""Tests of handlers' database connections: healthy, kept from job to job, and no more than needed."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.contrib.auth.models import Group
from django.db import connections, transaction

from jobqueue.worker.executor.connections import renew
from tests.app.worker_jobs_b import MESSES, leave_mess, look_around, write_async
from tests.conftest import ON_SQLITE
from tests.worker.harness import until

ON_POSTGRES = pytest.mark.parametrize("alias", [pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True)


@pytest.fixture(autouse=True)
def no_groups(alias):
    """Delete what handlers wrote."""
    yield
    Group.objects.using(alias).all().delete()


def found(jobs, *receipts):
    """What each job found when it looked around."""
    return [one.result for one in jobs.until("completed", *receipts)]


def open_connections(alias, worker):
    """Count the connections of a worker's executors, and of nobody else."""
    if alias == "default":
        name = connections[alias].settings_dict["NAME"]
        links = [one for pid in worker.executors for one in Path(f"/proc/{pid}/fd").iterdir()]
        return sum(leads_to(one) == str(name) for one in links)
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
        return cursor.fetchone()[0] - 3  # the test's, the supervisor's, its listener's


def leads_to(link):
    """Where a link of a process leads; nowhere, once it has closed that file."""
    try:
        return str(link.readlink())
    except FileNotFoundError:
        return None


def look(count=1):
    return look_around.enqueue_many([{}] * count)


@ON_POSTGRES
def test_a_connection_that_the_server_ended_is_replaced_before_a_handler_uses_it(start_worker, jobs, alias):
    worker = start_worker("--concurrency", "1")
    for _ in range(3):
        [seen] = found(jobs, *look())
        with connections[alias].cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [seen["session"]])
            assert cursor.fetchone() == (True,)
        [after] = found(jobs, *look())
        assert after["session"] != seen["session"]
        assert after["thread"] == seen["thread"]
    assert worker.stop() == 0


@ON_POSTGRES
def test_coroutines_find_their_connections_healthy_too(start_worker, jobs, ledger, alias):
    worker = start_worker()
    ledger.open_gate("open")
    for turn in range(3):
        [done] = jobs.until("completed", write_async.enqueue(name=f"turn {turn}", gate="open"), seconds=5)
        with connections[alias].cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [done.result])
    assert worker.stop() == 0


@pytest.mark.parametrize("which", MESSES)
def test_what_a_handler_leaves_behind_hurts_no_other_job(start_worker, jobs, alias, which):
    start_worker("--concurrency", "1")
    mess = leave_mess.enqueue(which=which)
    until(lambda: jobs.statuses(mess)[0] in ("completed", "dead_letter"))
    before, after = found(jobs, *look(2))
    for seen in (before, after):
        assert (seen["in_atomic_block"], seen["autocommit"], seen["names"]) == (False, True, [])
    assert before["session"] == after["session"]
    assert not Group.objects.using(alias).exists()


def test_a_handler_that_leaves_a_transaction_open_is_told_of_it_in_the_log(start_worker, jobs):
    worker = start_worker("--concurrency", "1")
    jobs.until("completed", leave_mess.enqueue(which="a block"))
    worker.until_said("left a transaction open on 'default'. It was rolled back", 5)


@pytest.mark.parametrize("age", [0, 60, None])
def test_connections_are_kept_from_job_to_job_whatever_their_age(start_worker, jobs, alias, age):
    start_worker("--concurrency", "1", database={"CONN_MAX_AGE": age})
    first = found(jobs, *look(10))
    later = found(jobs, *look(10))
    assert len({one["session"] for one in first + later}) == 1


def test_two_hundred_jobs_need_no_more_connections_than_there_are_slots(start_worker, jobs, alias):
    worker = start_worker("--concurrency", "4")
    counted = []
    for _ in range(4):
        jobs.until("completed", *look(50))
        counted.append(open_connections(alias, worker))
    assert 1 <= counted[0] <= 4
    assert max(counted) <= 4


def test_coroutines_have_a_connection_each_and_give_it_to_those_that_follow(start_worker, jobs, ledger, alias):
    worker = start_worker("--concurrency", "20")
    counted = []
    for wave in range(3):
        receipts = [write_async.enqueue(name=f"{wave}-{number}", gate=f"wave-{wave}") for number in range(20)]
        until(lambda wave=wave: len(ledger.entries("session")) == 20 * (wave + 1))
        counted.append(open_connections(alias, worker))
        ledger.open_gate(f"wave-{wave}")
        done = jobs.until("completed", *receipts)
        assert len({one.result for one in done}) == 20
        assert not Group.objects.using(alias).exists()
    assert counted[0] >= 20
    assert counted == [counted[0]] * 3
    assert worker.stop() == 0


@ON_SQLITE
def test_a_transaction_that_was_left_open_ends_though_an_error_still_has_a_cursor_of_it(alias):
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT 1")  # a connection
    transaction.atomic(alias).__enter__()
    Group.objects.using(alias).create(name="left open")
    kept = connections[alias].connection.execute("SELECT 1")
    renew()
    assert not Group.objects.using(alias).exists()
    Group.objects.using(alias).create(name="written by another")
    Group.objects.using(alias).all().delete()
    del kept
