"""Tests of the documented statements for the job table, which run verbatim beside this package's own.

A foreign program is played by a plain ``sqlite3`` connection in autocommit, with foreign keys enforced, that writes the
time as JavaScript does: ISO-8601 with milliseconds.
"""

from __future__ import annotations

import json
import sqlite3
from datetime import timedelta

import pytest
from django.db import connections

from jobqueue.errors import IdempotencyMismatch
from jobqueue.ids import new_id
from jobqueue.models import Attempt
from jobqueue.policy.settling import completed
from jobqueue.records import Again, Dead
from jobqueue.testing.clock import NOON
from jobqueue.testing.contract.harness import (
    LEASE,
    bury,
    draft,
    failing,
    finish,
    job,
    put,
    put_all,
    receipts,
    settle,
    sweep,
    take,
    take_one,
)
from tests.conftest import make_sql_backend

pytestmark = pytest.mark.sqlite

ENQUEUE = """
      INSERT INTO job_queue (
        id, type, payload, idempotency_key,
        scheduled_at, created_at, updated_at
      )
      VALUES (?, ?, ?, ?, ?, ?, ?)
    """
CLAIM = """
    UPDATE job_queue
    SET
      status = 'in_progress',
      lease_owner = ?,
      lease_until = ?,
      started_at = ?,
      attempts = attempts + 1,
      updated_at = ?
    WHERE id = (
      SELECT id
      FROM job_queue
      WHERE status = 'queued'
        AND scheduled_at <= ?
      ORDER BY priority ASC, scheduled_at ASC
      LIMIT 1
    )
    RETURNING *
  """
# Printed twice: for expired leases, and for stale ones with an earlier moment.
RELEASE_EXPIRED = """
    UPDATE job_queue
    SET
      status = 'queued',
      lease_owner = NULL,
      lease_until = NULL,
      started_at = NULL,
      updated_at = ?
    WHERE status = 'in_progress'
      AND lease_until < ?
  """
BURY = """
      UPDATE job_queue
      SET
        status = 'dead_letter',
        error = ?,
        completed_at = ?,
        updated_at = ?
      WHERE id = ?
    """
RETRY_LATER = """
    UPDATE job_queue
    SET
      status = 'queued',
      error = ?,
      scheduled_at = ?,
      lease_owner = NULL,
      lease_until = NULL,
      started_at = NULL,
      updated_at = ?
    WHERE id = ?
  """
DEAD_LETTERS = """
    SELECT *
    FROM job_queue
    WHERE status = 'dead_letter'
    ORDER BY completed_at DESC
    LIMIT ?
  """
REVIVE = """
    UPDATE job_queue
    SET
      status = 'queued',
      attempts = 0,
      error = NULL,
      scheduled_at = ?,
      completed_at = NULL,
      lease_owner = NULL,
      lease_until = NULL,
      started_at = NULL,
      updated_at = ?
    WHERE id = ? AND status = 'dead_letter'
  """
REVIVE_AGAIN = """
    UPDATE job_queue
    SET
      status = 'queued',
      attempts = 0,
      error = NULL,
      completed_at = NULL,
      scheduled_at = ?,
      lease_owner = NULL,
      lease_until = NULL,
      started_at = NULL,
      updated_at = ?
    WHERE id = ? AND status = 'dead_letter'
  """
REVIVE_TYPE = """
    UPDATE job_queue
    SET
      status = 'queued',
      attempts = 0,
      error = NULL,
      completed_at = NULL,
      scheduled_at = ?,
      lease_owner = NULL,
      lease_until = NULL,
      started_at = NULL,
      updated_at = ?
    WHERE type = ? AND status = 'dead_letter'
  """
RELEASE_AT_SHUTDOWN = """
          UPDATE job_queue
          SET
            status = 'queued',
            lease_owner = NULL,
            lease_until = NULL,
            started_at = NULL
          WHERE id = ?
        """
DELETE_COMPLETED = """
    DELETE FROM job_queue
    WHERE status = 'completed'
      AND completed_at < ?
  """
INSPECT = """
    SELECT id, type, attempts, error, created_at, completed_at
    FROM job_queue
    WHERE status = 'dead_letter'
    ORDER BY completed_at DESC
    LIMIT 100
  """
COUNT_QUEUED = """
    SELECT COUNT(*) as count
    FROM job_queue
    WHERE status = 'queued'
  """
OLDEST_QUEUED = """
    SELECT created_at
    FROM job_queue
    WHERE status = 'queued'
    ORDER BY created_at ASC
    LIMIT 1
  """
COUNT_IN_PROGRESS = """
    SELECT COUNT(*) as count
    FROM job_queue
    WHERE status = 'in_progress'
  """
COUNT_DEAD_LETTERS = """
    SELECT COUNT(*) as count
    FROM job_queue
    WHERE status = 'dead_letter'
  """
COUNT_COMPLETED = """
    SELECT COUNT(*) as count
    FROM job_queue
    WHERE status = 'completed'
      AND completed_at >= ?
  """
COUNT_FAILED = """
    SELECT COUNT(*) as count
    FROM job_queue
    WHERE status IN ('failed', 'dead_letter')
      AND completed_at >= ?
  """
LATENCIES = """
    SELECT
      (julianday(completed_at) - julianday(started_at)) * 86400000 as latency_ms
    FROM job_queue
    WHERE status = 'completed'
      AND completed_at >= ?
    ORDER BY latency_ms ASC
  """

CANONICAL_COLUMNS = [
    "id",
    "type",
    "status",
    "priority",
    "scheduled_at",
    "lease_owner",
    "lease_until",
    "payload",
    "idempotency_key",
    "attempts",
    "max_retries",
    "error",
    "created_at",
    "updated_at",
    "started_at",
    "completed_at",
    "result",
]
THEM = "node:4711"


def js(moment):
    """Write a moment as ``Date.toISOString`` does."""
    return moment.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


class Foreign:
    """A worker in another language that knows nothing but the printed statements."""

    def __init__(self, connection, clock):
        self.connection = connection
        self.clock = clock

    def now(self, later=timedelta(0)):
        return js(self.clock.now() + later)

    def run(self, statement, *parameters):
        return self.connection.execute(statement, parameters)

    def count(self, statement, *parameters):
        return self.run(statement, *parameters).fetchone()["count"]

    def enqueue(self, job_type="resize", key=None, at=None, job_id=None):
        job_id = job_id or new_id()
        self.run(ENQUEUE, job_id, job_type, '{"image_id":7}', key, at or self.now(), self.now(), self.now())
        return job_id

    def claim(self):
        now = self.now()
        return self.run(CLAIM, THEM, self.now(LEASE), now, now, now).fetchone()

    def release_expired(self, stale=timedelta(0)):
        return self.run(RELEASE_EXPIRED, self.now(), self.now(-stale)).rowcount

    def bury(self, job_id, error="boom"):
        self.run(BURY, error, self.now(), self.now(), job_id)


@pytest.fixture
def backend(databases, clock):
    return make_sql_backend("default", clock)


@pytest.fixture
def foreign(databases, clock):
    connection = sqlite3.connect(connections["default"].settings_dict["NAME"], isolation_level=None)
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA foreign_keys = ON")
    yield Foreign(connection, clock)
    connection.close()


@pytest.fixture
def dead(backend):
    """A dead letter of ours, with two failed attempts in its history."""
    job_id = put(backend, max_retries=2)
    settle(backend, failing(take_one(backend), Again(timedelta(0))))
    bury(backend, take_one(backend))
    return job_id


@pytest.fixture
def done(backend, clock):
    """A completed job of ours that failed once before: its last attempt took 2.5 s."""
    job_id = put(backend)
    settle(backend, failing(take_one(backend), Again(timedelta(0))))
    claim = take_one(backend)
    clock.advance(2.5)
    assert finish(backend, claim, '{"done": true}')
    return job_id


# Enqueue


def test_our_worker_claims_a_foreign_job_the_moment_it_is_due(backend, foreign, clock):
    job_id = foreign.enqueue(at=js(NOON + timedelta(seconds=10)))
    clock.advance(9.999)
    assert take(backend) == []
    clock.advance(0.002)
    claim = take_one(backend)
    assert (claim.id, claim.type, claim.payload) == (job_id, "resize", '{"image_id":7}')
    assert (claim.queue, claim.priority, claim.attempt, claim.max_retries, claim.fence) == ("default", 5, 1, 3, 1)
    assert (claim.scheduled_at, claim.created_at) == (NOON + timedelta(seconds=10), NOON)


def test_our_worker_settles_a_foreign_job(backend, foreign, clock):
    job_id = foreign.enqueue()
    clock.advance(1)
    assert finish(backend, take_one(backend), '{"done": true}')
    row = job(backend, job_id)
    assert (row.status, row.result, row.completed_at) == ("completed", {"done": True}, clock.now())


def test_a_foreign_duplicate_of_our_key_is_a_unique_violation(backend, foreign):
    put(backend, idempotency_key="extract-1")
    with pytest.raises(sqlite3.IntegrityError) as caught:
        foreign.enqueue(key="extract-1")
    assert caught.value.sqlite_errorname == "SQLITE_CONSTRAINT_UNIQUE"
    assert foreign.count(COUNT_QUEUED) == 1


def test_a_foreign_duplicate_of_a_foreign_key_is_a_unique_violation(foreign):
    foreign.enqueue(key="extract-1")
    with pytest.raises(sqlite3.IntegrityError) as caught:
        foreign.enqueue(key="extract-1")
    assert caught.value.sqlite_errorname == "SQLITE_CONSTRAINT_UNIQUE"


def test_many_foreign_jobs_have_no_key_at_all(foreign):
    foreign.enqueue()
    foreign.enqueue()
    assert foreign.count(COUNT_QUEUED) == 2


def test_our_duplicate_of_a_foreign_key_is_the_foreign_job(backend, foreign):
    job_id = foreign.enqueue(key="extract-1")
    (receipt,) = receipts(backend, draft(idempotency_key="extract-1"))
    assert (receipt.id, receipt.created, receipt.payload_differs) == (job_id, False, False)


def test_a_foreign_key_of_another_type_is_not_ours_to_share(backend, foreign):
    foreign.enqueue("extract_learning", key="extract-1")
    with pytest.raises(IdempotencyMismatch):
        put(backend, idempotency_key="extract-1")


# Claim


def test_a_foreign_worker_claims_our_jobs_by_priority_then_time(backend, foreign, clock):
    put_all(
        backend,
        draft("greet", priority=5, id="late"),
        draft("greet", priority=1, id="urgent"),
        draft("greet", priority=5, id="early", scheduled_at=NOON - timedelta(seconds=1)),
        draft("greet", priority=1, id="future", scheduled_at=NOON + timedelta(hours=1)),
    )
    clock.advance(1)
    rows = [foreign.claim() for _ in range(3)]
    assert [row["id"] for row in rows] == ["urgent", "early", "late"]
    assert foreign.claim() is None
    assert take(backend) == []


def test_a_foreign_worker_reads_the_canonical_columns_of_our_job(backend, foreign, clock):
    job_id = put(backend, payload='{"image_id": 7}', max_retries=5)
    clock.advance(1)
    row = foreign.claim()
    assert row.keys()[: len(CANONICAL_COLUMNS)] == CANONICAL_COLUMNS
    assert (row["id"], row["type"], row["status"], row["priority"]) == (job_id, "resize", "in_progress", 5)
    assert (json.loads(row["payload"]), row["attempts"], row["max_retries"]) == ({"image_id": 7}, 1, 5)
    assert (row["lease_owner"], row["lease_until"]) == (THEM, "2026-01-16T12:01:01.000Z")
    assert (row["scheduled_at"], row["created_at"]) == ("2026-01-16T12:00:00.000000Z",) * 2


def test_a_foreign_worker_claims_a_job_that_failed_with_us(backend, foreign, clock):
    job_id = put(backend)
    settle(backend, failing(take_one(backend), Again(timedelta(seconds=10))))
    assert foreign.claim() is None
    clock.advance(11)
    row = foreign.claim()
    assert (row["id"], row["attempts"], row["error"]) == (job_id, 2, "disk on fire")
    assert [past.fence for past in job(backend, job_id).history] == [1]


def test_after_a_foreign_claim_our_late_settlement_changes_nothing(backend, foreign, clock):
    job_id = put(backend)
    stale = take_one(backend)
    clock.advance(61)
    assert foreign.release_expired() == 1
    assert foreign.claim()["id"] == job_id
    assert job(backend, job_id).fence == stale.fence  # a foreign claim raises no fence: the owner tells them apart
    assert settle(backend, completed(stale, '"ours"')) == (completed(stale, '"ours"'),)
    assert settle(backend, failing(stale)) == (failing(stale),)
    assert backend.extend([stale], LEASE).lost == (stale,)
    row = job(backend, job_id)
    assert (row.status, row.lease_owner, row.result, row.history) == ("in_progress", THEM, None, ())


def test_our_sweep_ends_a_foreign_lease_that_ran_out(backend, foreign, clock):
    job_id = put(backend)
    foreign.claim()
    clock.advance(61)
    (ended,) = sweep(backend, clock).ended
    assert (ended.id, job(backend, job_id).status) == (job_id, "queued")
    assert [(past.ending, past.owner) for past in job(backend, job_id).history] == [("lease_lost", THEM)]
    assert take_one(backend).attempt == 2


# Leases


def test_a_foreign_release_of_expired_leases_gives_our_job_back(backend, foreign, clock):
    job_id = put(backend)
    settle(backend, failing(take_one(backend), Again(timedelta(0))))
    stale = take_one(backend)
    clock.advance(61)
    assert foreign.release_expired() == 1
    assert not finish(backend, stale)
    again = take_one(backend)
    assert (again.id, again.attempt, again.fence) == (job_id, 3, stale.fence + 1)
    assert finish(backend, again)


def test_a_foreign_release_leaves_running_leases_alone(backend, foreign, clock):
    put(backend)
    claim = take_one(backend)
    clock.advance(59.9)
    assert foreign.release_expired() == 0
    assert finish(backend, claim)


def test_a_foreign_release_of_stale_leases_waits_longer(backend, foreign, clock):
    put(backend)
    take_one(backend)
    clock.advance(61)
    assert foreign.release_expired(stale=timedelta(minutes=5)) == 0
    clock.advance(300)
    assert foreign.release_expired(stale=timedelta(minutes=5)) == 1


def test_a_foreign_release_at_shutdown_gives_the_job_back(backend, foreign, clock):
    put(backend)
    clock.advance(1)
    row = foreign.claim()
    foreign.run(RELEASE_AT_SHUTDOWN, row["id"])
    assert (take_one(backend).id, job(backend, row["id"]).attempts) == (row["id"], 2)


# Failure


def test_a_job_that_failed_elsewhere_comes_to_us_when_its_backoff_is_over(backend, foreign, clock):
    job_id = put(backend)
    clock.advance(1)
    foreign.claim()
    foreign.run(RETRY_LATER, "boom", foreign.now(timedelta(seconds=2.417)), foreign.now(), job_id)
    clock.advance(2.416)
    assert take(backend) == []
    clock.advance(0.002)
    assert take_one(backend).attempt == 2
    assert job(backend, job_id).error == "boom"


def test_a_foreign_retry_of_a_job_we_hold_refuses_our_settlement(backend, foreign):
    job_id = put(backend)
    claim = take_one(backend)
    foreign.run(RETRY_LATER, "boom", foreign.now(timedelta(seconds=2)), foreign.now(), job_id)
    assert not finish(backend, claim)
    assert job(backend, job_id).status == "queued"


def test_a_foreign_dead_letter_of_a_job_we_hold_refuses_our_settlement(backend, foreign):
    job_id = put(backend)
    claim = take_one(backend)
    foreign.bury(job_id)
    assert not finish(backend, claim)
    assert backend.extend([claim], LEASE).lost == (claim,)
    row = job(backend, job_id)
    assert (row.status, row.error, row.completed_at) == ("dead_letter", "boom", NOON)


def test_our_sweep_leaves_a_foreign_dead_letter_alone_though_its_lease_stands(backend, foreign, clock):
    job_id = put(backend)
    foreign.claim()
    foreign.bury(job_id)
    clock.advance(61)
    assert sweep(backend, clock).ended == ()
    assert job(backend, job_id).status == "dead_letter"


def test_our_retry_of_a_foreign_dead_letter_runs_it_again(backend, foreign):
    job_id = foreign.enqueue()
    foreign.claim()
    foreign.bury(job_id)
    assert backend.operator.retry([job_id]).done == (job_id,)
    row = job(backend, job_id)
    assert (row.status, row.attempts, row.lease_owner, row.lease_until) == ("queued", 0, None, None)
    assert finish(backend, take_one(backend))


# Dead letters


def test_foreign_lists_of_dead_letters_show_ours_newest_first(backend, foreign, clock, dead):
    clock.advance(1)
    theirs = foreign.enqueue("mine_upload")
    foreign.bury(theirs, "no route")
    rows = foreign.run(DEAD_LETTERS, 100).fetchall()
    assert [row["id"] for row in rows] == [theirs, dead]
    assert [row["id"] for row in foreign.run(DEAD_LETTERS, 1)] == [theirs]
    assert [tuple(row) for row in foreign.run(INSPECT)] == [
        (theirs, "mine_upload", 0, "no route", "2026-01-16T12:00:01.000Z", "2026-01-16T12:00:01.000Z"),
        (dead, "resize", 2, "disk on fire", "2026-01-16T12:00:00.000000Z", "2026-01-16T12:00:00.000000Z"),
    ]


@pytest.mark.parametrize("statement", [REVIVE, REVIVE_AGAIN])
def test_our_dead_letter_retried_by_a_foreign_statement_runs_with_us_again(backend, foreign, clock, dead, statement):
    clock.advance(60)
    assert foreign.run(statement, foreign.now(), foreign.now(), dead).rowcount == 1
    row = job(backend, dead)
    assert (row.status, row.attempts, row.error, row.completed_at) == ("queued", 0, None, None)
    clock.advance(0.001)
    claim = take_one(backend)
    assert (claim.id, claim.attempt, claim.fence) == (dead, 1, 3)
    assert finish(backend, claim)
    row = job(backend, dead)
    assert (row.status, row.end_reason, [past.fence for past in row.history]) == ("completed", None, [1, 2])


def test_a_job_retried_by_a_foreign_statement_can_die_again(backend, foreign, clock, dead):
    foreign.run(REVIVE, foreign.now(), foreign.now(), dead)
    clock.advance(1)
    settle(backend, failing(take_one(backend), Again(timedelta(0))))
    settle(backend, failing(take_one(backend), Dead("attempts used up")))
    row = job(backend, dead)
    assert (row.status, row.attempts, len(row.history)) == ("dead_letter", 2, 4)


def test_a_foreign_retry_touches_nothing_but_dead_letters(backend, foreign, done):
    assert foreign.run(REVIVE, foreign.now(), foreign.now(), done).rowcount == 0
    assert job(backend, done).status == "completed"


def test_a_foreign_retry_by_type_revives_that_type_only(backend, foreign, clock, dead):
    other = foreign.enqueue("greet")
    foreign.bury(other)
    third = foreign.enqueue("resize")
    foreign.bury(third)
    assert foreign.run(REVIVE_TYPE, foreign.now(), foreign.now(), "resize").rowcount == 2
    clock.advance(1)
    assert {claim.id for claim in take(backend)} == {dead, third}
    assert job(backend, other).status == "dead_letter"


def test_a_foreign_retry_is_refused_where_a_newer_job_holds_the_unique_key(backend, foreign):
    first = put(backend, unique_key="upload-1")
    bury(backend, take_one(backend))
    put(backend, unique_key="upload-1")
    with pytest.raises(sqlite3.IntegrityError):
        foreign.run(REVIVE, foreign.now(), foreign.now(), first)
    assert job(backend, first).status == "dead_letter"


# Cleanup


def test_a_foreign_cleanup_deletes_completed_jobs_with_history(backend, foreign, clock, done, dead):
    clock.advance(timedelta(days=7))
    young = put(backend)
    assert finish(backend, take_one(backend))
    assert foreign.run(DELETE_COMPLETED, foreign.now(-timedelta(days=7) + timedelta(milliseconds=1))).rowcount == 1
    assert backend.jobs.get(done) is None
    assert [job(backend, one).status for one in (young, dead)] == ["completed", "dead_letter"]
    assert Attempt.objects.filter(job_id=done).count() == 1  # an orphan, until it is pruned


def test_a_foreign_cleanup_keeps_what_is_younger_than_its_cutoff(backend, foreign, clock, done):
    assert foreign.run(DELETE_COMPLETED, js(clock.now() - timedelta(milliseconds=1))).rowcount == 0
    assert job(backend, done).status == "completed"


def test_a_key_is_free_again_after_a_foreign_cleanup(backend, foreign, clock):
    put(backend, idempotency_key="extract-1")
    assert finish(backend, take_one(backend))
    clock.advance(1)
    foreign.run(DELETE_COMPLETED, foreign.now())
    (receipt,) = receipts(backend, draft(idempotency_key="extract-1"))
    assert receipt.created


# Metrics


def test_foreign_counts_see_our_jobs_and_theirs(backend, foreign, clock, done, dead):
    hour_ago = foreign.now(-timedelta(hours=1))
    put_all(backend, draft("greet"), draft("greet"))
    foreign.enqueue()
    foreign.claim()
    assert [foreign.count(one) for one in (COUNT_QUEUED, COUNT_IN_PROGRESS, COUNT_DEAD_LETTERS)] == [2, 1, 1]
    assert [foreign.count(one, hour_ago) for one in (COUNT_COMPLETED, COUNT_FAILED)] == [1, 1]
    clock.advance(timedelta(hours=1, seconds=1))
    hour_ago = foreign.now(-timedelta(hours=1))
    assert [foreign.count(one, hour_ago) for one in (COUNT_COMPLETED, COUNT_FAILED)] == [0, 0]


def test_foreign_counts_of_failures_see_what_operators_stopped(backend, foreign):
    backend.operator.cancel([put(backend)])
    assert foreign.count(COUNT_FAILED, foreign.now(-timedelta(hours=1))) == 1


def test_a_foreign_look_at_the_oldest_job_finds_ours(backend, foreign, clock):
    assert foreign.run(OLDEST_QUEUED).fetchone() is None
    put(backend)
    clock.advance(5)
    foreign.enqueue()
    assert foreign.run(OLDEST_QUEUED).fetchone()["created_at"] == "2026-01-16T12:00:00.000000Z"


def test_foreign_latencies_are_those_of_our_last_attempts(backend, foreign, clock, done):
    foreign.enqueue()
    clock.advance(1)
    claim = take_one(backend)
    clock.advance(0.75)
    assert finish(backend, claim)
    latencies = [row["latency_ms"] for row in foreign.run(LATENCIES, foreign.now(-timedelta(hours=1)))]
    assert latencies == pytest.approx([750, 2500], abs=1)
