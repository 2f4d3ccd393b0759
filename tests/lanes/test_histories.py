"""Random histories of lanes with late commits, rollbacks, expired leases and retries, on each backend.

JOBQUEUE_LANE_HISTORIES says how many histories each backend goes through:

    JOBQUEUE_LANE_HISTORIES=4000 python -m pytest -n 3 tests/lanes/test_histories.py
"""

from __future__ import annotations

import os

import pytest
from django.db import connections

from jobqueue.backends.memory import MemoryBackend
from jobqueue.backends.postgresql import insert_statements
from jobqueue.backends.postgresql.claims import lane_statements
from jobqueue.models import Attempt, Job
from jobqueue.policy.lanes import Lane
from jobqueue.testing import VirtualClock
from tests.conftest import make_sql_backend
from tests.lanes.histories import SESSIONS, History

COUNTS = {"memory": 150, "default": 40, "postgres": 15}
#: How many histories a mutant may survive.
MUTANT_COUNT = 150


def went_through(alias, seeds):
    wrappers = [connections[alias].copy() for _ in range(SESSIONS)] if alias == "postgres" else []
    try:
        for seed in seeds:
            clock = VirtualClock()
            backend = MemoryBackend("", clock) if alias == "memory" else make_sql_backend(alias, clock)
            try:
                History(backend, clock, seed, wrappers).run()
            except AssertionError as error:
                raise AssertionError(f"history {seed}: {error}") from error
            finally:
                if alias != "memory":
                    Attempt.objects.using(alias).all().delete()
                    Job.objects.using(alias).all().delete()
    finally:
        for one in wrappers:
            one.close()


@pytest.mark.parametrize(
    "alias",
    ["memory", pytest.param("default", marks=pytest.mark.sqlite), pytest.param("postgres", marks=pytest.mark.postgres)],
)
def test_no_history_breaks_an_order_or_a_barrier(databases, alias):
    went_through(alias, range(int(os.environ.get("JOBQUEUE_LANE_HISTORIES", COUNTS[alias]))))


def without_the_producers_lock(monkeypatch):
    lock = "pg_advisory_xact_lock(lock)::text"
    assert lock in insert_statements.LOCK_LANES
    monkeypatch.setattr(insert_statements, "LOCK_LANES", insert_statements.LOCK_LANES.replace(lock, "lock::text"))
    monkeypatch.setattr(insert_statements, "LOCKED_LANES", insert_statements.LOCKED_LANES.replace(lock, "lock::text"))
    insert_statements.insert_statement.cache_clear()


def without_the_workers_lock(monkeypatch):
    lock = f"pg_try_advisory_xact_lock({lane_statements.CLAIM_LOCK})"
    assert lock in lane_statements.LOCK_NEXT
    monkeypatch.setattr(lane_statements, "LOCK_NEXT", lane_statements.LOCK_NEXT.replace(lock, "TRUE"))


def without_the_barrier(monkeypatch):
    monkeypatch.setattr(Lane, "may_start", lambda self: self.due)


@pytest.mark.postgres
@pytest.mark.parametrize("broken", [without_the_producers_lock, without_the_workers_lock, without_the_barrier])
def test_each_guard_is_needed(databases, monkeypatch, broken):
    broken(monkeypatch)
    try:
        with pytest.raises(AssertionError):
            went_through("postgres", range(MUTANT_COUNT))
    finally:
        monkeypatch.undo()
        insert_statements.insert_statement.cache_clear()
