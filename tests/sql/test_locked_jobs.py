"""Tests of locked rows of running jobs on Postgres: a worker's turn skips them, and never waits twice."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import psycopg
import pytest
from django.db import OperationalError, connections

from jobqueue.backends.postgresql import insert_statements, statements
from jobqueue.clock import SYSTEM
from jobqueue.errors import DatabaseBusy
from jobqueue.policy.leases import settle_overdue
from jobqueue.policy.settling import completed
from jobqueue.records import Dead
from jobqueue.states import JobStatus
from jobqueue.testing.contract.harness import LEASE, draft, failing, job, put_all, request, take
from jobqueue.testing.contract.lanes import claim as claim_in_order
from jobqueue.testing.contract.lanes import in_lane
from jobqueue.testing.contract.ports.registering import worker
from jobqueue.testing.contract.watching import report_of
from tests.conftest import make_sql_backend
from tests.waking.test_silence import address
from tests.worker.harness import until

pytestmark = pytest.mark.postgres


def fail_if_it_waits():
    with connections["postgres"].cursor() as cursor:
        cursor.execute("SET statement_timeout = '3s'")


@pytest.fixture
def backend(databases):
    made = make_sql_backend("postgres", None)
    made.owns_session = True
    fail_if_it_waits()
    yield made
    connections["postgres"].close()


@pytest.fixture
def other(backend):
    """Somebody else, in a transaction that stays open until the test ends it."""
    with psycopg.connect(address()) as opened:
        yield opened
        opened.rollback()


def lock(other, *claims):
    ids = [one.id for one in claims]
    assert len(other.execute("SELECT id FROM job_queue WHERE id = ANY(%s) FOR UPDATE", [ids]).fetchall()) == len(ids)


def claimed(backend, count):
    put_all(backend, *(draft() for _ in range(2 * count)))
    return take(backend, count)


def statuses(backend, claims):
    return [job(backend, one.id).status for one in claims]


@pytest.mark.parametrize("second", [completed, failing], ids=["one statement", "a transaction"])
def test_a_turn_stores_and_claims_past_a_locked_row_and_stores_that_one_later(backend, other, second):
    locked, *free = claims = claimed(backend, 3)
    offers = [completed(locked), second(free[0]), completed(free[1])]
    lock(other, locked)
    turn = backend.cycle("me", offers, request(2))
    assert (turn.refused, turn.postponed, len(turn.claims)) == ((), (offers[0],), 2)
    stored = JobStatus.COMPLETED if second is completed else JobStatus.QUEUED
    assert statuses(backend, claims) == [JobStatus.IN_PROGRESS, stored, JobStatus.COMPLETED]
    again = backend.cycle("me", [offers[0]])
    assert (again.refused, again.postponed) == ((), (offers[0],))
    other.rollback()
    again = backend.cycle("me", [offers[0]])
    assert (again.refused, again.postponed) == ((), ())
    assert statuses(backend, [locked]) == [JobStatus.COMPLETED]


def test_follow_up_jobs_and_jobs_of_schedules_do_not_wait_for_a_producer_of_their_lane(backend, other):
    taken, plain = claimed(backend, 2)
    other.execute(insert_statements.LOCKED_LANES, ['[{"queue": "imports", "lane": "*"}]'])
    barrier, free, slot = in_lane(), in_lane("7", parallel=True), in_lane()
    turn = backend.cycle("me", [completed(taken)._replace(children=(barrier, free)), completed(plain)])
    assert (turn.refused, [one.draft for one in turn.followed]) == ((), [barrier, free])
    assert backend.schedules.insert([("nightly", None, slot)]) == {slot.id}
    stored = [job(backend, one.id) for one in (barrier, free, slot)]
    assert [(one.lane, one.parallel) for one in stored] == [(None, False), ("7", True), (None, False)]
    other.rollback()
    started = {one.id for one in (*claim_in_order(backend), *claim_in_order(backend)) if one.queue == "imports"}
    assert started == {free.id, barrier.id}


def test_only_the_first_turn_that_meets_a_lock_waits_for_it(backend, other, monkeypatch):
    monkeypatch.setattr(statements, "SESSION", statements.SESSION.replace("lock_timeout = 200", "lock_timeout = 1500"))
    locked, *free = claimed(backend, 4)
    lock(other, locked)
    began = SYSTEM.monotonic()
    assert backend.cycle("me", [completed(locked)], request(1)).postponed == (completed(locked),)
    waited = SYSTEM.monotonic()
    assert waited - began > 1
    for one in free:
        assert backend.cycle("me", [completed(one)], request(1)).postponed == ()
    assert backend.cycle("me", [completed(locked)]).postponed == (completed(locked),)
    assert SYSTEM.monotonic() - waited < 1


def test_what_is_gone_or_lost_is_refused_and_not_postponed(backend, other):
    locked, gone, lost, free = claimed(backend, 4)
    backend.cycle("me", [failing(lost), completed(gone)])
    backend.operator.purge([gone.id])
    lock(other, locked)
    offers = [completed(one) for one in (locked, gone, lost, free)]
    turn = backend.cycle("me", offers)
    assert (turn.refused, turn.postponed) == ((offers[1], offers[2]), (offers[0],))
    assert statuses(backend, [free]) == [JobStatus.COMPLETED]


def test_the_first_turn_of_a_session_goes_past_locks_too(backend, other):
    locked, free = claimed(backend, 2)
    lock(other, locked)
    connections["postgres"].close()
    fail_if_it_waits()
    offers = [failing(locked), failing(free)]
    assert backend.cycle("me", offers, request(1)).postponed == (offers[0],)


def test_follow_up_jobs_of_what_is_postponed_are_stored_once(backend, other):
    locked, free = claimed(backend, 2)
    offers = [completed(one)._replace(children=(draft("greet"),)) for one in (locked, free)]
    lock(other, locked)
    turn = backend.cycle("me", offers)
    assert [one.draft for one in turn.followed] == list(offers[1].children)
    other.rollback()
    turn = backend.cycle("me", turn.postponed)
    assert [one.draft for one in turn.followed] == list(offers[0].children)


def test_reports_of_progress_go_past_a_locked_row(backend, other):
    locked, gone, free = claimed(backend, 3)
    backend.cycle("me", [completed(gone)])
    backend.operator.purge([gone.id])
    lock(other, locked)
    reports = [report_of(one) for one in (locked, gone, free)]
    assert backend.progress(reports) == (reports[0],)
    assert (job(backend, locked.id).progress, job(backend, free.id).progress) == (None, {"percent": 50})


def test_in_a_session_that_is_not_its_own_a_turn_waits_as_for_a_silent_server_and_the_next_goes_past(backend, other):
    backend.owns_session = False
    locked, free = claimed(backend, 2)
    lock(other, locked)
    offers = [completed(locked), completed(free)]
    with pytest.raises(OperationalError, match="statement timeout"):
        backend.cycle("me", offers, request(1))
    turn = backend.cycle("me", offers, request(1))
    assert (turn.refused, turn.postponed, len(turn.claims)) == ((), (offers[0],), 1)


VERBS = {
    "cycle": lambda backend, claim: backend.cycle("me", [completed(claim)], request(1)),
    "claim": lambda backend, _: backend.cycle("me", (), request(1)),
    "extend": lambda backend, claim: backend.extend([claim], LEASE),
    "review": lambda backend, claim: backend.review([claim]),
    "held_by": lambda backend, _: backend.held_by("me"),
    "progress": lambda backend, claim: backend.progress([report_of(claim)]),
    "sweep": lambda backend, _: backend.sweep(settle_overdue),
    "sample": lambda backend, _: backend.metrics.sample(backend.now() + timedelta(hours=1)),
    "enlist": lambda backend, _: backend.workers.enlist(worker("one")),
    "dismiss": lambda backend, _: backend.workers.dismiss("one"),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_worker_that_finds_whole_tables_locked_takes_the_database_for_busy_and_not_for_gone(backend, other, verb):
    (claim,) = claimed(backend, 1)
    other.execute("LOCK TABLE job_queue, job_queue_worker")
    with pytest.raises(DatabaseBusy, match="another session has locked"):
        VERBS[verb](backend, claim)
    other.rollback()
    VERBS[verb](backend, claim)


def test_an_edit_keeps_what_the_payload_is_once_the_lock_is_free(backend, other):
    (claim,) = claimed(backend, 1)
    assert backend.cycle("me", [failing(claim, Dead("attempts used up"))]).refused == ()
    other.execute("UPDATE job_queue SET payload = '{\"image_id\": 8}' WHERE id = %s", [claim.id])
    with ThreadPoolExecutor(1) as pool:
        handled = pool.submit(edit, backend, claim.id)
        until(lambda: waiting_for(other))
        other.commit()
        assert handled.result().done == (claim.id,)
    assert job(backend, claim.id).context["first"]["payload"] == {"image_id": 8}


def edit(backend, job_id):
    try:
        return backend.operator.retry_edited(job_id, "{}", 1)
    finally:
        connections["postgres"].close()


def waiting_for(other):
    """Whether a session waits for what this one has locked."""
    with psycopg.connect(address()) as looking:
        found = looking.execute(
            "SELECT 1 FROM pg_stat_activity WHERE %s = ANY(pg_blocking_pids(pid))", [other.info.backend_pid]
        )
        return found.fetchone() is not None
