"""Tests of a claim by groups, which reads before it locks: jobs postponed in between aren't taken."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connections

from jobqueue.backends.postgresql import statements
from jobqueue.models import Job
from jobqueue.testing.contract.harness import draft, put, put_all, take, together
from tests.conftest import make_sql_backend

pytestmark = pytest.mark.postgres


def test_a_job_postponed_between_reading_and_locking_is_not_claimed(databases, monkeypatch):
    backend = make_sql_backend("postgres", None)
    put_all(backend, draft("unheard_of", priority=1))
    job_id = put(backend)
    assert take(backend, 1, types=frozenset({"rare"})) == []  # from here on it goes group by group
    slow = statements.FIRST_OF_GROUPS.replace(
        "(SELECT id FROM head ORDER BY", "(SELECT id FROM head, (SELECT pg_sleep(1)) AS nap ORDER BY"
    )
    assert slow != statements.FIRST_OF_GROUPS
    monkeypatch.setattr(statements, "FIRST_OF_GROUPS", slow)
    statements.cycle_statement.cache_clear()
    try:
        claims, postponed = together(lambda: take(backend, 1), lambda: _postpone(job_id))
    finally:
        statements.cycle_statement.cache_clear()
    assert postponed == 1
    assert claims == []


def _postpone(job_id):
    asleep = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()"
    with connections["postgres"].cursor() as cursor:
        cursor.execute(asleep)
        while cursor.fetchone() == (0,):
            cursor.execute(asleep)
    jobs = Job.objects.using("postgres").filter(pk=job_id)
    return jobs.update(scheduled_at=jobs.get().scheduled_at + timedelta(hours=1))
