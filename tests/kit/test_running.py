"""Tests of running jobs inside a test's transaction: at once, when it is asked for, and one attempt alone."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction
from django.test import TestCase
from pydantic import ValidationError

import jobqueue
from jobqueue import JobQueueError, LeaseLost, signals
from jobqueue.backends.sql.backend import SqlBackend
from jobqueue.policy.leases import settle_dead
from jobqueue.states import Move
from jobqueue.testing import drain, enqueued_jobs, perform, run_inline
from tests.kit import handlers

pytestmark = pytest.mark.usefixtures("rolled_back")


def statuses():
    return [(job.type, job.status.value, job.attempts) for job in enqueued_jobs()]


@pytest.mark.parametrize(
    "handler", [handlers.add, handlers.add_async, handlers.add_atomically], ids=lambda one: one.name
)
def test_a_job_runs_in_the_transaction_of_the_test(handler):
    receipt = handler.enqueue("Ada")
    (report,) = drain()
    assert handlers.names() == ["Ada"]
    assert (report.job_id, report.status, report.result) == (receipt.id, "completed", "Ada")
    assert jobqueue.get(receipt.id).result == "Ada"


def test_follow_up_jobs_run_too_and_jobs_that_are_not_due_wait():
    handlers.follow.enqueue("Ada")
    handlers.add.using(delay=60).enqueue("later")
    reports = drain()
    assert [report.job_type for report in reports] == ["kit.follow", "kit.add", "kit.add"]
    assert [draft.type for draft in reports[0].followed] == ["kit.add"]
    assert reports[0].progress == ({"percent": 10, "name": "Ada"},)
    assert handlers.names() == ["Ada, enqueued", "Ada, followed"]
    assert len([job for job in enqueued_jobs() if job.status == "queued"]) == 1


def test_an_error_is_raised_once_its_outcome_is_stored():
    receipt = handlers.fail.enqueue()
    with pytest.raises(OSError, match="disk on fire at attempt 1"):
        drain()
    job = jobqueue.get(receipt.id)
    assert (job.status, job.attempts, job.error) == ("queued", 1, "disk on fire at attempt 1")


def test_errors_are_collected_and_retries_do_not_wait():
    failing, recovering = handlers.fail.enqueue(), handlers.fail.enqueue(until=2)
    reports = drain(errors="collect")
    assert [report.move for report in reports if report.job_id == failing.id] == [Move.RETRY, Move.RETRY, Move.BURY]
    assert jobqueue.get(failing.id).status == "dead_letter"
    assert jobqueue.get(recovering.id).result == "done"
    assert {report.delay.total_seconds() for report in reports if report.move is Move.RETRY} == {60}


def test_a_job_waits_for_its_retry_if_it_is_asked_to():
    handlers.fail.enqueue()
    assert len(drain(errors="collect", retries=False)) == 1
    assert statuses() == [("kit.fail", "queued", 1)]


def test_a_snooze_is_no_error():
    handlers.nap.enqueue()
    assert [report.move for report in drain()] == [Move.SNOOZE]


def test_a_job_without_end_is_stopped_in_words():
    handlers.forever.enqueue()
    with pytest.raises(AssertionError, match=r"20 attempts have run, and job \w+ \(kit.forever\) is still due"):
        drain(limit=20)


def test_a_handlers_database_error_leaves_the_test_its_transaction():
    handlers.break_rules.enqueue()
    with pytest.raises(IntegrityError):
        drain()
    (job,) = enqueued_jobs()
    assert "IntegrityError" in jobqueue.get(job.id).history[0].error_class


def test_a_database_error_that_a_handler_hides_is_named_where_it_breaks_the_transaction():
    handlers.break_rules.enqueue(catch=True)
    with pytest.raises(JobQueueError, match=r"outside of atomic\(\), which breaks the transaction of this test"):
        drain()
    assert len(enqueued_jobs()) == 1


def test_signals_are_sent_as_by_a_worker():
    heard = []

    def hear(signal, job_type, **facts):
        heard.append((job_type, facts.get("attempt"), facts.get("reason")))

    watched = (signals.started, signals.progressed, signals.completed, signals.retried)
    for signal in watched:
        signal.connect(hear)
    try:
        handlers.ensure.enqueue("Ada")
        handlers.fail.enqueue()
        drain(errors="collect", retries=False)
    finally:
        for signal in watched:
            signal.disconnect(hear)
    assert heard == [*[("kit.ensure", 1, "")] * 3, ("kit.fail", 1, ""), ("kit.fail", 1, "failed")]


def test_a_handler_whose_claim_is_gone_is_told(rolled_back):
    receipt = handlers.add.enqueue("Ada")

    def end_claims(**_):
        rolled_back.end_claims("a test", settle_dead)

    signals.started.connect(end_claims)
    try:
        with pytest.raises(LeaseLost, match=receipt.id):
            drain()
    finally:
        signals.started.disconnect(end_claims)


def test_inline_jobs_run_once_what_enqueues_them_is_committed():
    with run_inline() as reports:
        handlers.follow.enqueue("Ada")
        assert handlers.names() == ["Ada, enqueued", "Ada, followed"]
        assert len(reports) == 3
    handlers.add.enqueue("nobody")
    assert "nobody" not in handlers.names()


def test_inline_jobs_wait_for_the_callers_commit(rolled_back):
    if not isinstance(rolled_back, SqlBackend):
        pytest.skip("a queue in memory has no part in the caller's transaction")
    alias = rolled_back.alias
    with run_inline():
        with TestCase.captureOnCommitCallbacks(using=alias, execute=True), transaction.atomic(using=alias):
            handlers.add.enqueue("Ada")
            assert handlers.names() == []
        assert handlers.names() == ["Ada"]
        with pytest.raises(KeyError), transaction.atomic(using=alias):
            handlers.add.enqueue("nobody")
            raise KeyError
        with (
            pytest.raises(OSError, match="disk on fire"),
            TestCase.captureOnCommitCallbacks(using=alias, execute=True),
            transaction.atomic(using=alias),
        ):
            handlers.fail.enqueue()
    assert handlers.names() == ["Ada"]


def test_immediate_jobs_run_within_enqueue(rolled_back):
    with run_inline(immediate=True), rolled_back.atomic():
        handlers.add.enqueue("Ada")
        assert handlers.names() == ["Ada"]
        with pytest.raises(OSError, match="disk on fire"):
            handlers.fail.enqueue()


def test_inline_errors_can_be_collected():
    with run_inline(errors="collect") as reports:
        handlers.fail.enqueue()
    assert isinstance(reports[0].error, OSError)


@pytest.mark.parametrize(("mode", "ran"), [("store", []), ("inline", ["Ada"]), ("immediate", ["Ada"])])
def test_the_setting_does_the_same(settings, rolled_back, mode, ran):
    if not isinstance(rolled_back, SqlBackend):
        settings.JOBQUEUE = settings.JOBQUEUE | {"TESTING": mode}
    else:
        settings.JOBQUEUE = {"DATABASE": rolled_back.alias, "TESTING": mode}
    handlers.add.enqueue("Ada")
    assert handlers.names() == ran


@pytest.mark.parametrize(
    "handler", [handlers.add, handlers.add_async, handlers.add_atomically], ids=lambda one: one.name
)
def test_one_attempt_stores_no_job(handler):
    assert perform(handler, "Ada").result == "Ada"
    assert (handlers.names(), enqueued_jobs()) == (["Ada"], [])


def test_one_attempt_tells_what_it_came_to():
    report = perform("kit.follow", name="Ada")
    assert report.progress == ({"percent": 10, "name": "Ada"},)
    assert [(draft.type, draft.payload) for draft in report.followed] == [("kit.add", '{"name":"Ada, followed"}')]
    failed = perform(handlers.fail)
    assert (failed.move, failed.status, failed.delay.total_seconds()) == (Move.RETRY, "queued", 60)
    with pytest.raises(OSError, match="disk on fire"):
        failed.result  # noqa: B018 - it raises


def test_one_attempt_validates_its_payload():
    with pytest.raises(ValidationError, match="orderNumber"):
        perform(handlers.order, orderNumber="many")
    assert perform(handlers.order, orderNumber="7", price="2.50").result == "7: 2.50"
