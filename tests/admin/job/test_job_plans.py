"""Tests of the query plans of a job's page: the number of visited rows is bounded, wherever the job is."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.db import connections
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from jobqueue.admin.job import detail, history, why
from jobqueue.clock import SYSTEM
from jobqueue.ids import least_id
from jobqueue.models import Job
from jobqueue.testing.contract.harness import draft, finish, put, take
from tests.admin.job.test_page import enlist
from tests.admin.search.test_search_plans import costly, crowd, steps, visited
from tests.sql.test_plans import fill

__all__ = ["crowd"]

MANY = 20_000


@pytest.fixture
def low(monkeypatch):
    """Bounds that cannot hide a walk."""
    monkeypatch.setattr(why, "AHEAD_COUNTED", 100)
    monkeypatch.setattr(detail, "CAP", 100)


def test_no_page_visits_more_than_a_few_of_many_rows(crowd, operator, low):
    enlist(crowd)
    rows = Job.objects.using(crowd.alias)
    parent = put(crowd, "parent", priority=1)
    claims = take(crowd, 1, types=frozenset({"parent"}))
    fill(crowd.alias, MANY, name=least_id(SYSTEM.now()), status="'completed'", parent_id="'01OTHER'")
    assert finish(crowd, claims[0])
    fill(crowd.alias, 500, name="09", status="'completed'", parent_id=f"'{parent}'")
    behind = put(crowd, priority=10, delay=timedelta(0))
    pages = {
        "queued behind many": behind,
        "completed among many": parent,
        "dead of a frequent kind": rows.filter(error_fingerprint="storm").values_list("pk", flat=True)[0],
        "failed": rows.filter(status="failed").values_list("pk", flat=True)[0],
        "running": rows.filter(status="in_progress").values_list("pk", flat=True)[0],
        "a follow-up": put(crowd, parent_id=parent),
    }
    looks = {name: (lambda job_id=job_id: operator.page(job_id)) for name, job_id in pages.items()}
    looks |= {
        f"{name}, again": lambda job_id=job_id: operator.client.get(reverse("admin:jobqueue_job_live", args=[job_id]))
        for name, job_id in pages.items()
    }
    assert costly(crowd, looks) == {}
    assert "behind 100 or more due jobs" in operator.page(behind).content.decode()
    assert "There are more." in operator.page(parent).content.decode()


@pytest.fixture
def long_log(queue, monkeypatch):
    """A log of many entries on the queue's own database, all by one user and about one other job."""
    monkeypatch.setattr(history, "LOG_LOOKED_AT", 100)
    monkeypatch.setattr(history, "HISTORY_LOOKED_AT", 300)
    monkeypatch.setattr(LogEntry, "objects", LogEntry.objects.db_manager(queue.alias))
    user = User.objects.using(queue.alias).create(username="diligent")
    kind, other = ContentType.objects.db_manager(queue.alias).get_for_model(Job), draft().id
    about = {"user_id": user.pk, "content_type_id": kind.pk, "action_flag": CHANGE}
    LogEntry.objects.bulk_create([LogEntry(**about, object_id=other) for _ in range(MANY)], batch_size=1_000)
    yield lambda job_id, words: LogEntry.objects.create(**about, object_id=job_id, change_message=words)
    User.objects.using(queue.alias).filter(pk=user.pk).delete()


def test_the_log_is_read_a_stretch_at_a_time_whatever_its_length(queue, long_log):
    connection, job_id = connections[queue.alias], put(queue)
    Job.objects.using(queue.alias).filter(pk=job_id).update(created_at=SYSTEM.now() - timedelta(days=365))
    long_log(job_id, "Moved.")
    job = Job.objects.using(queue.alias).get(pk=job_id)
    costs, most = (
        (steps, 10_000) if connection.vendor == "sqlite" else (visited, 650)
    )  # a row counts in the index and in the table
    for statement in ("SELECT 1", "ANALYZE"):
        with connection.cursor() as cursor:
            cursor.execute(statement)
        with CaptureQueriesContext(connection) as asked:
            found = history.past_of(job, tuple).actions, history.history_of(job, tuple, None).found
            assert [[deed.words for deed in deeds] for deeds in found] == [["Moved."]] * 2
            assert history.history_of(job, tuple, MANY // 2).found == ()
        read = [one["sql"] for one in asked if "django_admin_log" in one["sql"]]
        assert len(read) >= 9
        assert max(costs(connection, one) for one in read) < most
