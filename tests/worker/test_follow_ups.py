"""Tests of what is stored with a completion: an atomic handler's writes, follow-up jobs and progress."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group

from jobqueue.models import Job
from tests.app.worker_jobs_b import book, bring_up, ill_advised, judge, nap, out_of_mind, out_of_sight, report, spoil
from tests.worker.harness import until

ON_POSTGRES = pytest.mark.parametrize("alias", [pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True)


@pytest.fixture(autouse=True)
def no_groups(alias):
    """Delete what handlers wrote."""
    yield
    Group.objects.using(alias).all().delete()


def names(alias):
    return list(Group.objects.using(alias).order_by("name").values_list("name", flat=True))


def children_of(alias, receipt):
    return list(Job.objects.using(alias).filter(parent_id=receipt.id).order_by("id"))


def take_away(alias, receipt):
    """Have a running job claimed by somebody else."""
    row = Job.objects.using(alias).filter(pk=receipt.id)
    fence = row.get().fence
    assert row.update(fence=fence + 1, lease_owner="somebody:else:1") == 1


# One transaction


def test_an_atomic_handler_and_its_completion_commit_together(start_worker, jobs, ledger, alias):
    receipt = book.using(tenant="acme").enqueue(name="kept", gate="go")
    start_worker()
    until(lambda: ledger.started(receipt.id))
    assert names(alias) == []
    assert children_of(alias, receipt) == []
    ledger.open_gate("go")
    [done] = jobs.until("completed", receipt)
    assert done.result == "kept"
    assert names(alias) == ["kept"]
    [child] = children_of(alias, receipt)
    assert (child.type, child.tenant) == ("nap", "acme")
    jobs.until("completed", child.id)


def test_an_atomic_handler_that_fails_leaves_nothing_but_its_failure(start_worker, jobs, alias):
    failing, fine = book.enqueue(name="lost", fail=True), book.enqueue(name="kept")
    start_worker()
    jobs.until("dead_letter", failing)
    jobs.until("completed", fine)
    assert names(alias) == ["kept"]
    assert children_of(alias, failing) == []
    assert [(one.ending, one.message) for one in jobs.history(failing)] == [("failed", "not booked")]


@ON_POSTGRES
def test_an_atomic_handler_that_lost_its_lease_rolls_back(start_worker, jobs, ledger, alias):
    lost, after = book.enqueue(name="lost", gate="go"), book.enqueue(name="after")
    worker = start_worker("--concurrency", "1")
    until(lambda: ledger.started(lost.id))
    take_away(alias, lost)
    ledger.open_gate("go")
    jobs.until("completed", after)
    assert names(alias) == ["after"]
    assert children_of(alias, lost) == []
    row = jobs.get(lost)
    assert (row.status, row.lease_owner, row.result) == ("in_progress", "somebody:else:1", None)
    assert jobs.history(lost) == []
    worker.until_said(f"Job lease lost: book {lost.id}", 5)
    assert worker.stop() == 0


@pytest.mark.parametrize("how", ["left open", "to be rolled back"])
def test_an_atomic_handler_whose_transaction_cannot_commit_has_failed(start_worker, jobs, alias, how):
    spoilt, after = spoil.enqueue(how=how), book.enqueue(name="after")
    worker = start_worker("--concurrency", "1", "--drain", up=0)
    assert worker.wait() == 0
    assert jobs.statuses(spoilt, after) == ["dead_letter", "completed"]
    assert names(alias) == ["after"]
    assert children_of(alias, spoilt) == []
    [failed] = jobs.history(spoilt)
    assert (failed.ending, failed.error_class) == ("failed", "django.db.transaction.TransactionManagementError")
    assert f"Job completed: spoil {spoilt.id}" not in worker.output


def test_atomic_handlers_work_without_processes_too(start_worker, jobs, alias):
    kept, lost = book.enqueue(name="kept"), book.enqueue(name="lost", fail=True)
    start_worker("--processes", "0", "--drain", up=0).wait()
    assert jobs.statuses(kept, lost) == ["completed", "dead_letter"]
    assert names(alias) == ["kept"]
    assert [one.status for one in children_of(alias, kept)] == ["completed"]


# Follow-up jobs


def test_follow_up_jobs_appear_with_the_completion_and_know_where_they_come_from(start_worker, jobs, ledger, alias):
    parent = bring_up.using(tenant="acme", workspace="north").enqueue(gate="go")
    start_worker()
    until(lambda: ledger.started(parent.id))
    assert children_of(alias, parent) == []
    ledger.open_gate("go")
    [done] = jobs.until("completed", parent)
    found = children_of(alias, parent)
    assert [one.id for one in found] == done.result
    assert [(one.type, one.tenant, one.workspace) for one in found] == [
        ("nap", "acme", "north"),
        ("note_run", "acme", "north"),
    ]
    jobs.until("completed", *(one.id for one in found))


def test_an_attempt_that_fails_has_no_follow_up_jobs(start_worker, jobs, alias):
    parent = bring_up.enqueue(fail=True)
    start_worker("--drain", up=0).wait()
    assert jobs.get(parent).status == "dead_letter"
    assert children_of(alias, parent) == []


def test_a_completion_that_is_refused_drops_the_follow_up_jobs(start_worker, jobs, ledger, alias):
    parent, other = bring_up.enqueue(gate="go"), nap.enqueue()
    worker = start_worker("--concurrency", "1")
    until(lambda: ledger.started(parent.id))
    take_away(alias, parent)
    ledger.open_gate("go")
    jobs.until("completed", other)
    worker.until_said(f"Job lease lost: bring_up {parent.id}", 5)
    assert children_of(alias, parent) == []
    assert jobs.get(parent).lease_owner == "somebody:else:1"


def test_a_key_that_is_taken_harms_neither_the_parent_nor_the_other_children(start_worker, jobs, alias):
    older = nap.using(idempotency_key="mine", delay=3600).enqueue()
    stranger = judge.using(idempotency_key="theirs", delay=3600).enqueue(which="retry")
    parent = bring_up.enqueue(keys={"mine": "nap", "theirs": "nap", "free": "other"})
    worker = start_worker("--drain", up=0)
    assert worker.wait() == 0
    assert jobs.get(parent).status == "completed"
    found = children_of(alias, parent)
    assert [(one.type, one.status) for one in found] == [
        ("nap", "completed"),
        ("note_run", "completed"),
        ("wind_up_later", "completed"),
    ]
    assert jobs.statuses(older, stranger) == ["queued", "queued"]
    assert "The key 'theirs' belongs to job" in worker.output


# Progress


def test_progress_is_seen_while_the_job_runs_and_the_last_report_stays(start_worker, jobs, ledger):
    receipt = report.enqueue(gate="go")
    start_worker()
    until(lambda: ledger.started(receipt.id))
    until(lambda: progress_of(jobs, receipt) == {"percent": 40, "step": "reading"}, 1.5, "progress")
    assert jobs.get(receipt).status == "in_progress"
    ledger.open_gate("go")
    jobs.until("completed", receipt)
    assert progress_of(jobs, receipt) == {"percent": 90, "step": "writing"}


def progress_of(jobs, receipt):
    found = jobs.get(receipt).progress
    return json.loads(found) if isinstance(found, str) else found


# What an attempt says of itself


def test_what_a_handler_says_of_its_attempt_is_what_becomes_of_it(start_worker, jobs, queue):
    said = {which: judge.enqueue(which=which) for which in ("retry", "snooze", "discard", "cancel")}
    worth, worthless = judge.enqueue(which="worth it"), judge.enqueue(which="not worth it")
    odd, *beyond = ill_advised.enqueue(), out_of_sight.enqueue(), out_of_mind.enqueue()
    worker = start_worker()
    until(lambda: all(jobs.history(one) for one in (*said.values(), worth, worthless, odd, *beyond)))
    now = queue.now()

    def became(receipt):
        row = jobs.get(receipt)
        return (row.status, row.attempts, row.end_reason)

    assert became(said["retry"]) == ("queued", 1, None)
    assert became(said["snooze"]) == ("queued", 0, None)
    assert became(said["discard"]) == ("dead_letter", 1, "discarded")
    assert became(said["cancel"]) == ("failed", 1, "cancelled")
    assert became(worth) == ("queued", 1, None)
    assert became(worthless) == ("dead_letter", 1, "not retryable")
    for receipt in (odd, *beyond):
        assert became(receipt) == ("queued", 1, None)
        assert jobs.get(receipt).error == "the error of the handler"
        assert "raised by the retry function of" in jobs.history(receipt)[0].traceback
    for receipt, seconds in ((said["retry"], 3600), (said["snooze"], 3600), (worth, 600)):
        due = jobs.get(receipt).scheduled_at - now
        assert timedelta(seconds=seconds - 5) < due < timedelta(seconds=seconds + 1)
    assert timedelta(0) < jobs.get(odd).scheduled_at - now < timedelta(seconds=3.1)
    assert [jobs.endings(one) for one in said.values()] == [["failed"], ["snoozed"], ["failed"], ["cancelled"]]
    [ill] = jobs.history(odd)
    assert (ill.error_class, ill.message) == ("ValueError", "the error of the handler")
    assert "ZeroDivisionError: the policy is broken" in ill.traceback
    assert worker.stop() == 0
