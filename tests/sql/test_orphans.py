"""Tests of history whose job another program has deleted: found, and deleted in cheap batches."""

from __future__ import annotations

import re
import threading
from datetime import UTC, datetime

import pytest
from django.db import connections, transaction
from django.test.utils import CaptureQueriesContext

from jobqueue.backends.memory import MemoryBackend
from jobqueue.backends.sql import orphans
from jobqueue.backends.sql.orphans import Orphans
from jobqueue.ids import new_id
from jobqueue.models import Attempt, Metric
from jobqueue.testing.contract.harness import failing, put, take
from tests.sql.test_plans import fill
from tests.worker.conftest import *  # noqa: F403 - real workers
from tests.worker.harness import until

NOON = datetime(2026, 1, 16, 12, 0, tzinfo=UTC)


def attempts_of(alias, *job_ids):
    Attempt.objects.using(alias).bulk_create(
        Attempt(job_id=one, fence=1, attempt=1, owner="me", ending="failed", ended_at=NOON) for one in job_ids
    )


def left(alias):
    return set(Attempt.objects.using(alias).values_list("job_id", flat=True))


def foreign_delete(alias, job_id):
    with connections[alias].cursor() as cursor:
        cursor.execute("DELETE FROM job_queue WHERE id = %s", [job_id])


def test_the_history_of_a_deleted_job_is_deleted_and_no_other(queue, alias):
    gone, kept = put(queue), put(queue)
    for _ in range(2):
        queue.cycle("me", [failing(claim) for claim in take(queue, 2)])
    foreign_delete(alias, gone)
    assert left(alias) == {gone, kept}
    assert Orphans(queue).prune() == 1
    assert left(alias) == {kept}
    assert Orphans(queue).prune() == 0


@pytest.mark.parametrize("start", range(0, 41, 8))
def test_the_whole_history_is_looked_through_round_and_round(queue, alias, monkeypatch, start):
    monkeypatch.setattr(orphans, "PAGE", 7)
    monkeypatch.setattr(orphans, "BATCH", 2)
    jobs = [put(queue) for _ in range(20)]
    lost = [new_id() for _ in range(20)]
    attempts_of(alias, *(one for both in zip(jobs, lost, strict=True) for one in both))
    walker = Orphans(queue)
    walker._after = Attempt.objects.using(alias).order_by("pk")[start].pk - 1 if start < 40 else 10**12
    found = [walker.prune() for _ in range(6)]
    assert sum(found) == 20
    assert max(found) <= 7
    assert left(alias) == set(jobs)
    later = new_id()
    attempts_of(alias, later)
    assert sum(walker.prune() for _ in range(4)) == 1
    assert later not in left(alias)


def test_an_empty_history_and_a_memory_have_none(queue):
    assert Orphans(queue).prune() == 0
    assert Orphans(MemoryBackend()).prune() == 0


def test_a_job_that_comes_back_meanwhile_keeps_its_history(queue, alias, monkeypatch):
    gone = new_id()
    attempts_of(alias, gone)
    walker = Orphans(queue)
    delete = walker._delete

    def late(ids):
        fill(alias, 1, id=f"'{gone}'")
        return delete(ids)

    monkeypatch.setattr(walker, "_delete", late)
    assert walker.prune() == 0
    assert left(alias) == {gone}


@pytest.mark.parametrize("alias", [pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True)
def test_what_another_worker_deletes_is_left_to_it(queue, alias):
    attempts_of(alias, *(new_id() for _ in range(10)))
    counts = []

    def other():
        counts.append(Orphans(queue).prune())
        connections.close_all()

    with transaction.atomic(using=alias):
        list(Attempt.objects.using(alias).select_for_update()[:4])
        thread = threading.Thread(target=other)
        thread.start()
        thread.join(20)
        assert counts == [6]


def test_a_worker_does_it(queue, alias, start_worker):
    Metric.objects.using(alias).all().delete()
    kept = put(queue, queue="not-served")
    attempts_of(alias, kept, *(new_id() for _ in range(600)))
    worker = start_worker("--queue", "default")
    until(lambda: left(alias) == {kept}, 20, "the orphans to go")
    assert worker.stop() == 0
    assert "Deleted 600 attempts" in worker.output


def crowd(alias, count):
    """Store many jobs that have ended, and an attempt for each of them."""
    fill(alias, count, status="'dead_letter'")
    vendor = connections[alias].vendor
    columns = "job_id, fence, attempt, owner, ending, error_class, message, traceback, ended_at"
    moment = "'2026-01-16T12:00:00.000000Z'"
    rows = f"SELECT id, 1, 1, 'me', 'failed', '', '', '', {moment} FROM job_queue"
    if vendor == "postgresql":
        rows = rows.replace(moment, f"{moment}::timestamptz")
    with connections[alias].cursor() as cursor:
        cursor.execute(f"INSERT INTO job_queue_attempt ({columns}) {rows}")


@pytest.mark.parametrize("is_analysed", [False, True], ids=["no statistics", "statistics"])
def test_a_look_reads_a_page_of_the_history_by_indexes_and_writes_nothing(queue, alias, monkeypatch, is_analysed):
    monkeypatch.setattr(orphans, "PAGE", 500)
    crowd(alias, 30_000)
    if is_analysed:
        with connections[alias].cursor() as cursor:
            cursor.execute("ANALYZE")
    walker = Orphans(queue)
    with CaptureQueriesContext(connections[alias]) as captured:
        assert walker.prune() == 0
    asked = [one["sql"] for one in captured.captured_queries]
    assert len(asked) <= 4
    assert all(sql.startswith("SELECT") for sql in asked)
    explain = "EXPLAIN QUERY PLAN" if connections[alias].vendor == "sqlite" else "EXPLAIN"
    with connections[alias].cursor() as cursor:
        for sql in asked:
            cursor.execute(f"{explain} {sql}")
            plan = "\n".join(str(row[-1]) for row in cursor.fetchall())
            scanned = re.findall(r"(?:Seq Scan on|SCAN) (\w+)(?! USING)", plan)
            # Of a small table without statistics Postgres may well sort a third.
            assert set(scanned) <= (set() if is_analysed else {"job_queue_attempt"}), plan
