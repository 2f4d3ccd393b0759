"""Tests of rows that make a statement fail: they are set aside, and no other job waits for them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import DatabaseError

from jobqueue.backends.sql.obstacles import MOST_ALIKE
from jobqueue.policy.leases import settle_overdue
from jobqueue.policy.settling import completed
from jobqueue.records import Scope
from jobqueue.testing.contract.harness import LEASE, draft, job, put, put_all, request, take, take_one
from tests.app.worker_jobs import note_run
from tests.worker.harness import until

SQLITE_TRIGGER = """
CREATE TRIGGER refuse BEFORE UPDATE ON job_queue WHEN OLD.tenant = 'refused' AND {condition}
BEGIN SELECT RAISE(ABORT, 'the ledger is closed'); END
"""
POSTGRES_FUNCTION = """
CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
IF OLD.tenant = 'refused' AND {condition} THEN RAISE EXCEPTION 'the ledger is closed'; END IF; RETURN NEW; END $$
"""
POSTGRES_TRIGGER = "CREATE TRIGGER refuse BEFORE UPDATE ON job_queue FOR EACH ROW EXECUTE FUNCTION refuse()"

TO_RUN = "NEW.status = 'in_progress'"
TO_END = "NEW.status <> 'in_progress'"
ANYTHING = "NEW.id = OLD.id"


@pytest.fixture
def refuse(sql, alias):
    """A function that has the database refuse changes of the jobs of one tenant."""

    def make(condition):
        if alias == "default":
            sql(SQLITE_TRIGGER.format(condition=condition))
        else:
            sql(POSTGRES_FUNCTION.format(condition=condition))
            sql(POSTGRES_TRIGGER)

    yield make
    sql("DROP TRIGGER IF EXISTS refuse" + ("" if alias == "default" else " ON job_queue"))


def test_a_job_that_cannot_be_claimed_is_a_dead_letter_and_the_others_are_claimed(queue, refuse):
    before, bad, after = put_all(queue, draft(), draft(tenant="refused"), draft())
    refuse(TO_RUN)
    assert queue.cycle("me", (), request()).next_due == timedelta(0)
    assert [claim.id for claim in take(queue)] == [before, after]
    told = job(queue, bad)
    assert (told.status, told.end_reason, told.attempts) == ("dead_letter", "unreadable", 0)
    assert "the ledger is closed" in told.error
    assert queue.left_out == {}


def test_what_finished_is_stored_though_the_claim_beside_it_meets_an_obstacle(queue, refuse):
    done, bad = put_all(queue, draft(), draft(tenant="refused"))
    claim = take_one(queue)
    assert claim.id == done
    refuse(TO_RUN)
    assert queue.cycle("me", [completed(claim, "7")], request()).refused == ()
    assert (job(queue, done).result, job(queue, bad).status) == (7, "dead_letter")


def test_a_job_that_can_neither_be_claimed_nor_ended_is_left_out(queue, refuse):
    bad, *others = put_all(queue, draft(tenant="refused", priority=1), *(draft() for _ in range(3)))
    refuse(ANYTHING)
    queue.cycle("me", (), request())
    assert [take_one(queue).id for _ in others] == others
    assert take(queue) == []
    assert job(queue, bad).status == "queued"
    assert list(queue.left_out) == [bad]
    assert "the ledger is closed" in queue.left_out[bad]


def test_a_job_that_is_left_out_does_not_hide_others_behind_those_of_unknown_types(queue, refuse):
    bad, _unknown, good = put_all(
        queue, draft(tenant="refused", priority=1), draft(type="nobody_knows", priority=2), draft(priority=3)
    )
    refuse(ANYTHING)
    queue.cycle("me", (), request())
    assert take_one(queue).id == good
    assert list(queue.left_out) == [bad]


def test_a_job_that_was_left_out_is_tried_again_later(queue, refuse, sql, alias, monkeypatch):
    bad = put(queue, tenant="refused")
    refuse(ANYTHING)
    queue.cycle("me", (), request())
    assert take(queue) == []
    sql("DROP TRIGGER refuse" + ("" if alias == "default" else " ON job_queue"))
    monkeypatch.setattr("jobqueue.backends.sql.obstacles.LEFT_OUT_FOR", 0.0)
    queue.sweep(settle_overdue)
    assert take_one(queue).id == bad


def expired(queue, sql, *ids):
    marks = ", ".join(["%s"] * len(ids))
    sql(f"UPDATE job_queue SET lease_until = '2020-01-01T00:00:00Z' WHERE id IN ({marks})", *ids)
    queue.leases.second_look = timedelta(0)


def test_a_lease_that_cannot_be_ended_keeps_no_other_from_being_swept(queue, refuse, sql):
    bad, good = put_all(queue, draft(tenant="refused"), draft())
    assert len(take(queue)) == 2
    expired(queue, sql, bad, good)
    refuse(TO_END)
    swept = queue.sweep(settle_overdue)
    assert [one.id for one in swept.ended] == [good]
    assert list(queue.left_out) == [bad]
    assert queue.sweep(settle_overdue).ended == ()


def test_an_expiry_that_cannot_be_stored_keeps_no_other_from_ending(queue, refuse, sql):
    bad, good = put_all(queue, draft(tenant="refused"), draft())
    sql("UPDATE job_queue SET expires_at = '2020-01-01T00:00:00Z'")
    refuse("NEW.status = 'failed'")
    assert queue.sweep(settle_overdue).expired == (good,)
    assert (job(queue, bad).status, job(queue, good).status) == ("dead_letter", "failed")


def test_a_lease_that_cannot_be_extended_is_skipped_and_the_others_are_extended(queue, refuse):
    put_all(queue, draft(tenant="refused"), draft())
    claims = take(queue)
    refuse("NEW.lease_until <> OLD.lease_until")
    found = queue.extend(claims, LEASE * 2)
    assert (found.lost, [claim.tenant for claim in found.skipped]) == ((), ["refused"])


def test_what_fails_inside_a_callers_transaction_is_the_callers(queue, refuse):
    put(queue, tenant="refused")
    refuse(TO_RUN)
    with pytest.raises(DatabaseError, match="closed"), queue.atomic():
        queue.cycle("me", (), request())


def ignore(sql, alias, condition):
    """Have the database leave jobs of one tenant as they are, without a word."""
    if alias == "default":
        sql(SQLITE_TRIGGER.format(condition=condition).replace("RAISE(ABORT, 'the ledger is closed')", "RAISE(IGNORE)"))
    else:
        sql(
            POSTGRES_FUNCTION.format(condition=condition).replace(
                "RAISE EXCEPTION 'the ledger is closed'", "RETURN NULL"
            )
        )
        sql(POSTGRES_TRIGGER)


def test_a_job_that_the_database_silently_leaves_as_it_is_is_left_out(queue, refuse, sql, alias):
    bad, *others = put_all(queue, draft(tenant="refused", priority=1), *(draft() for _ in range(3)))
    ignore(sql, alias, ANYTHING)
    taken = []
    for _ in range(4):
        taken += [claim.id for claim in take(queue, 2)]
    assert taken == others
    assert list(queue.left_out) == [bad]


STATES = ["AB123", "42P01", "42501", "22012", "P0001"]


@pytest.mark.postgres
@pytest.mark.parametrize("alias", ["postgres"], indirect=True)
@pytest.mark.parametrize("state", STATES)
def test_whatever_a_trigger_says_is_said_of_its_row(queue, refuse, sql, state):
    bad, good = put_all(queue, draft(tenant="refused", priority=1), draft())
    sql(
        POSTGRES_FUNCTION.format(condition=TO_RUN).replace(
            "RAISE EXCEPTION 'the ledger is closed'", f"RAISE EXCEPTION 'closed' USING ERRCODE = '{state}'"
        )
    )
    sql(POSTGRES_TRIGGER)
    queue.cycle("me", (), request())
    assert [claim.id for claim in take(queue)] == [good]
    assert job(queue, bad).status == "dead_letter"


@pytest.mark.postgres
@pytest.mark.parametrize("alias", ["postgres"], indirect=True)
def test_what_is_checked_only_at_the_commit_is_found(queue, refuse, sql):
    bad, good = put_all(queue, draft(tenant="refused", priority=1), draft())
    sql(POSTGRES_FUNCTION.format(condition=TO_RUN))
    sql(
        "CREATE CONSTRAINT TRIGGER refuse AFTER UPDATE ON job_queue DEFERRABLE INITIALLY DEFERRED "
        "FOR EACH ROW EXECUTE FUNCTION refuse()"
    )
    queue.cycle("me", (), request())
    assert [claim.id for claim in take(queue)] == [good]
    assert job(queue, bad).status == "dead_letter"


def test_where_everything_is_refused_few_jobs_are_ended_for_it(queue, refuse):
    put_all(queue, *(draft(tenant="refused") for _ in range(60)), good := draft(priority=9))
    refuse(TO_RUN)
    taken = []
    for _ in range(9):
        taken += [claim.id for claim in take(queue)]
    assert taken == [good.id]
    assert sum(record.count for record in queue.jobs.dead_letters()) == MOST_ALIKE
    assert len(queue.left_out) == 60 - MOST_ALIKE


def test_an_obstacle_behind_a_crowd_that_is_paused_is_found(queue, refuse):
    put_all(queue, *(draft(queue="stopped", priority=1) for _ in range(300)))
    bad, good = put_all(queue, draft(tenant="refused", priority=2), draft(priority=3))
    queue.operator.pause(Scope.QUEUE, "stopped")
    refuse(TO_RUN)
    taken = []
    for _ in range(4):
        taken += [claim.id for claim in take(queue, 5)]
    assert taken == [good]
    assert job(queue, bad).status == "dead_letter"


@pytest.mark.parametrize("processes", ["0", "1"])
def test_a_worker_runs_the_others_and_status_names_what_it_leaves_out(
    queue, refuse, start_worker, jobs, ledger, run, processes
):
    bad = note_run.using(tenant="refused", priority=1).enqueue(number=0)
    refuse(ANYTHING)
    worker = start_worker("--poll-interval", "0.2", "--processes", processes, up=int(processes))
    jobs.until("completed", *(note_run.enqueue(number=number) for number in range(1, 4)))
    until(lambda: "leaves it out" in run("status").out, what="the worker's news")
    status = run("status")
    assert f"error: Job {bad.id} can neither be run nor ended" in status.out
    assert status.code == 2
    jobs.until("completed", note_run.enqueue(number=4))
    assert worker.stop() == 0
    assert "out of reach" not in worker.output


@pytest.mark.parametrize("processes", ["0", "1"])
def test_an_outcome_that_cannot_be_stored_holds_up_no_other(queue, refuse, start_worker, jobs, ledger, processes):
    refuse(TO_END)
    bad = note_run.using(tenant="refused").enqueue(number=0)
    worker = start_worker("--poll-interval", "0.2", "--processes", processes, up=int(processes))
    jobs.until("completed", *(note_run.enqueue(number=number) for number in range(1, 4)))
    worker.until_said(bad.id)
    jobs.until("completed", note_run.enqueue(number=4))
    assert jobs.get(bad).status == "in_progress"
    worker.stop()
    assert "out of reach" not in worker.output
