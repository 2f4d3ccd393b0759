"""Tests of large orders, which a job carries out once, for as long as the user is allowed to, and reports on."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.urls import reverse
from pydantic import ValidationError

from jobqueue.admin.actions import confirm, mixin
from jobqueue.api import enqueue
from jobqueue.clock import SYSTEM
from jobqueue.errors import Cancel, Interrupted, PayloadInvalid, StopReason
from jobqueue.handlers.registry import registry
from jobqueue.models import Job
from jobqueue.orders import Order, background
from jobqueue.orders.background import TYPE, Operation, start
from jobqueue.policy.settling import completed, released
from jobqueue.records import Filter, Scope, WorkerRecord
from jobqueue.states import JobStatus
from jobqueue.testing.contract.harness import draft, put, put_all, settle, take_one
from tests.admin.conftest import row, told
from tests.worker.conftest import jobs, ledger, start_worker
from tests.worker.harness import database_of

__all__ = ["jobs", "ledger", "start_worker"]

DEAD = Filter(statuses=frozenset({JobStatus.DEAD_LETTER}))


@pytest.fixture
def small(monkeypatch):
    """Make three jobs too many for a request."""
    for module in (mixin, confirm, background):
        monkeypatch.setattr(module, "BATCH", 2)


@pytest.fixture
def dead(queue):
    """A function that makes dead letters and returns their ids, in order."""

    def make(count, **values):
        ids = put_all(queue, *(draft(**values) for _ in range(count)))
        Job.objects.using(queue.alias).filter(pk__in=ids).update(
            status="dead_letter", completed_at=SYSTEM.now() - timedelta(minutes=5)
        )
        return sorted(ids)

    return make


class Attendant:
    """Whoever attends an attempt: it hears reports, may lose them, and may want the handler to stop."""

    def __init__(self, queue, job_id, *, hears=True, then=lambda: None, stop_after=None):
        self.queue, self.job_id, self.hears, self.then, self.stop_after = queue, job_id, hears, then, stop_after
        self.reports = []

    def report(self, text):
        self.reports.append(json.loads(text))
        if self.hears:
            Job.objects.using(self.queue.alias).filter(pk=self.job_id).update(progress=json.loads(text))
        self.then()

    def stop_reason(self):
        return StopReason.SHUTDOWN if len(self.reports) == self.stop_after else None

    def follow(self, *_args):
        raise AssertionError("no follow-up job is expected")


def attempt(queue, **given):
    """Claim the order there is and run its handler; return the claim, what it returned and who attended."""
    claim = take_one(queue, types=frozenset({TYPE}))
    attendant = Attendant(queue, claim.id, **given)
    return claim, registry.get(TYPE).call(claim, attendant), attendant


def order(visitor, verb="retry", **values):
    user = visitor.user
    about = {"user_id": str(user.pk), "user_name": user.username, "of_staff": user.is_staff}
    return Order(verb=verb, **{**about, **values})


def statuses(queue, ids):
    found = dict(Job.objects.using(queue.alias).filter(pk__in=ids).values_list("pk", "status"))
    return [found.get(job_id) for job_id in ids]


def entries():
    return sorted(LogEntry.objects.values_list("object_id", flat=True))


# Given


def test_a_large_selection_becomes_a_job_to_whose_page_the_user_is_sent(queue, operator, dead, small):
    ids = dead(3)
    asked = operator.act("retry", "x", select_across="1", query="?status=dead_letter")
    assert "jobs are changed in the background, by a job of the queue" in asked.content.decode()
    answer = operator.agree(asked, why="provider is back", per_minute="60")
    job = Job.objects.using(queue.alias).get(type=TYPE)
    assert answer.redirect_chain == [(reverse("admin:jobqueue_job_change", args=[job.pk]), 302)]
    assert told(answer) == [
        "This job does it in the background. Its progress is shown here.",
        "No live worker runs jobs of this type. The job waits until one is started.",
    ]
    assert job.payload["wanted"] == {"statuses": ["dead_letter"]}
    assert {name: value for name, value in job.payload["order"].items() if value is not None} == {
        "verb": "retry",
        "user_id": str(operator.user.pk),
        "user_name": operator.user.username,
        "of_staff": True,
        "why": "provider is back",
        "per_minute": 60,
    }
    assert statuses(queue, ids) == ["dead_letter"] * 3
    assert entries() == []


def test_with_a_live_worker_nobody_is_warned(queue, operator, dead, small):
    dead(3)
    now = queue.now()
    about = {"name": "one", "host": "host", "pid": 1, "version": "0", "processes": 1, "slots": 1}
    queue.workers.enlist(WorkerRecord(owner="host:1:x", started_at=now, seen_at=now, types=(TYPE,), **about))
    assert len(told(operator.do("retry", "x", across=True))) == 1
    queue.workers.dismiss("host:1:x")


def test_a_live_worker_of_other_queues_does_not_do_it(queue, operator, dead, small):
    dead(3)
    now = queue.now()
    about = {"name": "one", "host": "host", "pid": 1, "version": "0", "processes": 1, "slots": 1, "queues": ("mail",)}
    queue.workers.enlist(WorkerRecord(owner="host:1:x", started_at=now, seen_at=now, types=(TYPE,), **about))
    assert told(operator.do("retry", "x", across=True))[1].startswith("No live worker")
    queue.workers.dismiss("host:1:x")


def test_the_same_order_given_twice_is_one(queue, operator, dead, small):
    dead(3)
    asked = operator.act("retry", "x", select_across="1")
    operator.agree(asked)
    assert told(operator.agree(asked))[0] == "This job is already doing the same."
    assert Job.objects.using(queue.alias).filter(type=TYPE).count() == 1
    operator.agree(asked, why="another reason")
    assert Job.objects.using(queue.alias).filter(type=TYPE).count() == 2


def test_an_order_does_not_wait_in_a_queue_that_was_paused(queue, operator):
    queue.operator.pause(Scope.QUEUE, "default")
    assert row(queue, start(order(operator), DEAD).id).queue == "jobqueue"
    queue.operator.resume(Scope.QUEUE, "default")
    assert row(queue, start(order(operator, why="again"), DEAD).id).queue == "default"


# Carried out


def test_it_is_done_in_batches_told_and_logged_with_who_and_why(queue, operator, dead, small):
    ids = dead(5)
    job_id = start(order(operator, why="provider is back"), DEAD).id
    _claim, result, attendant = attempt(queue)
    assert result == {"done": 5, "left_alone": 0, "reasons": []}
    assert statuses(queue, ids) == ["queued"] * 5
    assert [(one["percent"], one["done"], one["of"]) for one in attendant.reports] == [
        (40, 2, 5),
        (80, 4, 5),
        (99, 5, 5),
        (100, 5, 5),
    ]
    assert entries() == ids
    assert set(LogEntry.objects.values_list("change_message", "user__username")) == {
        (f"Retried: provider is back (by job {job_id})", operator.user.username)
    }


@pytest.mark.parametrize(
    ("verb", "values", "changed"),
    [
        ("run_now", {}, {}),
        ("reschedule", {"scheduled_at": SYSTEM.now() + timedelta(days=9)}, {}),
        ("prioritise", {"priority": 1}, {"priority": 1}),
        ("move", {"queue": "mail"}, {"queue": "mail"}),
        ("cancel", {}, {"status": "failed"}),
        ("purge", {}, None),
    ],
)
def test_every_verb_can_be_done_in_the_background(queue, operator, small, verb, values, changed):
    ids = sorted(put_all(queue, *(draft(delay=timedelta(days=1)) for _ in range(3))))
    start(order(operator, verb, **values), Filter(statuses=frozenset({JobStatus.QUEUED})))
    _claim, result, _attendant = attempt(queue)
    assert result["done"] == 3
    assert entries() == ids
    rows = Job.objects.using(queue.alias).filter(pk__in=ids)
    assert rows.count() == (0 if changed is None else 3)
    for name, value in (changed or {}).items():
        assert set(rows.values_list(name, flat=True)) == {value}
    if verb == "run_now":
        assert all(one.scheduled_at <= SYSTEM.now() for one in rows)
    if verb == "reschedule":
        assert {one.scheduled_at for one in rows} == {values["scheduled_at"]}


def test_what_is_left_alone_is_counted_with_the_first_reasons(queue, operator, dead, small):
    dead(4)
    held = dead(1, unique_key="one at a time")
    put(queue, unique_key="one at a time")
    start(order(operator), DEAD)
    _claim, result, _attendant = attempt(queue)
    assert (result["done"], result["left_alone"]) == (4, 1)
    assert result["reasons"] == [
        {"reason": "a newer job holds its unique key 'one at a time'", "count": 1, "ids": held}
    ]


@pytest.mark.parametrize(
    "wanted",
    [Filter(error="hunter2"), Filter(payload=(("env.0.value", "hunter2"),))],
    ids=["in an error", "in a payload"],
)
def test_what_no_list_shows_is_not_found_in_the_background_either(queue, operator, small, wanted):
    secret = {"env": [{"name": "API_KEY", "value": "hunter2"}]}
    plain = {"env": [{"name": "REGION", "value": "hunter2"}]}
    ids = put_all(queue, *(draft(payload=json.dumps(one)) for one in (secret, plain, secret, secret)))
    rows = Job.objects.using(queue.alias)
    rows.filter(pk__in=ids).update(error="api_key=hunter2")
    rows.filter(pk=ids[1]).update(error="no such thing: hunter2")
    start(order(operator, "prioritise", priority=1), replace(wanted, statuses=frozenset({JobStatus.QUEUED})))
    _claim, result, attendant = attempt(queue)
    assert result == {"done": 1, "left_alone": 0, "reasons": []}
    assert attendant.reports[-1]["of"] == 1
    assert list(rows.filter(pk__in=ids, priority=1).values_list("pk", flat=True)) == [ids[1]]


def test_what_came_or_ended_since_is_left_alone(queue, operator, dead, small):
    ids = dead(3)
    start(order(operator), DEAD)
    Job.objects.using(queue.alias).filter(pk=ids[0]).update(completed_at=SYSTEM.now())
    late = dead(1)
    _claim, result, _attendant = attempt(queue)
    assert statuses(queue, [*ids, *late]) == ["dead_letter", "queued", "queued", "dead_letter"]
    assert (result["done"], result["left_alone"]) == (2, 1)
    assert result["reasons"][0]["reason"] == "has ended since the order was given"


@pytest.mark.parametrize("verb", ["cancel", "purge"])
@pytest.mark.parametrize("types", [frozenset(), frozenset({TYPE})])
def test_an_order_does_not_select_itself(queue, operator, small, verb, types):
    put_all(queue, *(draft() for _ in range(3)))
    wanted = Filter(types=types, statuses=frozenset({JobStatus.QUEUED, JobStatus.IN_PROGRESS}))
    job_id = start(order(operator, verb), wanted).id
    # Even where the clock was set back between the two.
    Job.objects.using(queue.alias).filter(pk=job_id).update(created_at=SYSTEM.now() - timedelta(hours=1))
    claim, result, _attendant = attempt(queue)
    assert result["done"] == (0 if types else 3)
    assert row(queue, job_id).cancel_requested_at is None
    assert settle(queue, completed(claim, "null")) == ()


# Interrupted and run again


def test_after_a_stop_it_goes_on_where_it_was(queue, operator, dead, small):
    ids = dead(5)
    start(order(operator), DEAD)
    claim = take_one(queue, types=frozenset({TYPE}))
    with pytest.raises(Interrupted):
        registry.get(TYPE).call(claim, Attendant(queue, claim.id, stop_after=1))
    assert statuses(queue, ids) == ["queued", "queued", *["dead_letter"] * 3]
    assert settle(queue, released(claim)) == ()
    claim, result, attendant = attempt(queue)
    assert claim.fence == 2
    assert result == {"done": 5, "left_alone": 0, "reasons": []}
    assert [one["done"] for one in attendant.reports] == [4, 5, 5]
    assert entries() == ids


@pytest.mark.parametrize("verb", ["retry", "purge"])
def test_after_a_crash_that_swallowed_its_report_nothing_is_done_or_counted_twice(queue, operator, dead, small, verb):
    ids = dead(5)
    start(order(operator, verb), DEAD)
    claim = take_one(queue, types=frozenset({TYPE}))
    with pytest.raises(Interrupted):
        registry.get(TYPE).call(claim, Attendant(queue, claim.id, hears=False, stop_after=2))
    assert row(queue, claim.id).progress is None
    assert settle(queue, released(claim)) == ()
    if verb == "retry":  # one that was retried has failed again meanwhile: it is not this order's any more
        again = Job.objects.using(queue.alias).filter(pk=ids[0])
        again.update(status="dead_letter", completed_at=SYSTEM.now())
    _claim, result, _attendant = attempt(queue)
    assert result["done"] == 5
    assert entries() == ids


def test_a_pace_holds_over_batches_and_attempts(queue, operator, dead, small):
    ids = dead(6)
    start(order(operator, per_minute=1), DEAD)
    claim = take_one(queue, types=frozenset({TYPE}))
    with pytest.raises(Interrupted):
        registry.get(TYPE).call(claim, Attendant(queue, claim.id, hears=False, stop_after=2))
    assert settle(queue, released(claim)) == ()
    attempt(queue)
    due = [row(queue, job_id).scheduled_at for job_id in ids]
    gaps = [after - before for before, after in pairwise(due)]
    assert min(gaps) >= timedelta(seconds=59.9)
    assert max(gaps) < timedelta(seconds=90)


# Who may


@pytest.mark.parametrize("withdrawn", ["the verb", "the view", "active", "staff", "the user"])
def test_whoever_may_no_longer_do_it_has_nothing_done(queue, operator, dead, small, withdrawn):
    ids = dead(3)
    start(order(operator), DEAD)
    withdraw(operator.user, withdrawn)
    with pytest.raises(Cancel, match=operator.user.username):
        attempt(queue)
    assert statuses(queue, ids) == ["dead_letter"] * 3
    assert entries() == []


def withdraw(user, what):
    if what == "the user":
        user.delete()
    elif what == "active":
        User.objects.filter(pk=user.pk).update(is_active=False)
    elif what == "staff":
        User.objects.filter(pk=user.pk).update(is_staff=False)
    else:
        codename = "retry_job" if what == "the verb" else "view_job"
        user.user_permissions.remove(user.user_permissions.get(codename=codename))


def test_a_permission_that_is_withdrawn_midway_stops_the_rest(queue, operator, dead, small):
    ids = dead(5)
    start(order(operator), DEAD)
    with pytest.raises(
        Cancel, match=r"no longer has the permission\. Of 5 jobs, 2 were already changed and 0 left alone\."
    ):
        attempt(queue, then=lambda: withdraw(operator.user, "the verb"))
    assert statuses(queue, ids) == ["queued", "queued", *["dead_letter"] * 3]
    assert entries() == ids[:2]


def test_who_was_let_in_without_being_of_the_staff_need_not_be(queue, sign_in, dead, small):
    ids, visitor = dead(3), sign_in("view_job", "retry_job", is_staff=False)
    start(order(visitor), DEAD)
    attempt(queue)
    assert statuses(queue, ids) == ["queued"] * 3


@pytest.mark.parametrize("user_id", ["", "nobody", "0", "99999999999999999999999", "' OR 1=1 --"])
def test_a_user_that_cannot_be_is_nobody(queue, operator, dead, small, user_id):
    dead(3)
    start(order(operator).model_copy(update={"user_id": user_id}), DEAD)
    with pytest.raises(Cancel, match="deleted or is no longer active"):
        attempt(queue)


# What it is


def test_a_payload_that_is_no_order_is_never_begun(queue, operator):
    good = json.loads(Operation(order=order(operator), wanted={}, asked_at=SYSTEM.now()).model_dump_json())
    for bad in (
        {**good, "order": {**good["order"], "verb": "delete_everything"}},
        {**good, "order": {**good["order"], "code": "import os"}},
        {**good, "wanted": {"status": ["queued"]}},
        {**good, "wanted": []},
        {**good, "asked_at": "2026-01-01T00:00:00"},
        {**good, "more": 1},
    ):
        put(queue, TYPE, payload=json.dumps(bad))
        with pytest.raises(PayloadInvalid):
            attempt(queue)
        with pytest.raises(ValidationError):
            Operation.model_validate(bad)


def test_nobody_edits_an_order(queue, operator, dead):
    job_id = start(order(operator), DEAD).id
    Job.objects.using(queue.alias).filter(pk=job_id).update(status="dead_letter")
    address = reverse("admin:jobqueue_job_edit", args=[job_id])
    assert not registry.get(TYPE).editable
    for answer in (operator.client.get(address, follow=True), operator.client.post(address, {}, follow=True)):
        assert told(answer) == [f"Payloads of the type {TYPE} can't be edited."]


FORGERIES = {
    "of no one's": lambda given: {**given, "seal": ""},
    "with another's seal": lambda given: {**given, "seal": "0" * 64 + ":" + "A" * 43},
    "for another verb": lambda given: {**given, "order": {**given["order"], "verb": "purge"}},
    "in another's name": lambda given: {**given, "order": {**given["order"], "user_id": "1"}},
    "for more": lambda given: {**given, "wanted": {}},
    "for later": lambda given: {**given, "asked_at": "2100-01-01T00:00:00Z"},
}


@pytest.mark.parametrize("forged", FORGERIES.values(), ids=FORGERIES)
def test_who_may_only_write_jobs_gives_no_order_in_an_operators_name(queue, sign_in, dead, small, forged):
    ids, chief = dead(3), sign_in(is_superuser=True)
    start(order(chief, "retry"), DEAD)
    (job,) = Job.objects.using(queue.alias).filter(type=TYPE)
    Job.objects.using(queue.alias).filter(type=TYPE).delete()
    enqueue(TYPE, forged(job.payload))
    with pytest.raises(Cancel, match="This order was not given"):
        attempt(queue)
    assert statuses(queue, ids) == ["dead_letter"] * 3
    assert entries() == []


@pytest.mark.parametrize("value", [0, -0.0, 1e22, 1e-7, 100.0, 0.1, 2**70, -(10**300), True, None, 'é\u202e🦊\\"'])
def test_an_order_is_the_one_that_was_given_whatever_a_database_makes_of_its_numbers(queue, operator, value):
    put(queue)
    start(order(operator, why="é🦊"), Filter(payload=(("a", value),)))
    _claim, result, _attendant = attempt(queue)
    assert result == {"done": 0, "left_alone": 0, "reasons": []}


@pytest.mark.parametrize("by", ["button", "list", "everything"])
def test_an_order_is_given_again_only_by_who_gave_it(queue, operator, sign_in, dead, small, by):
    ids, chief = dead(3), sign_in(is_superuser=True)
    job_id = start(order(chief, "purge"), DEAD).id
    queue.operator.cancel([job_id])

    def retry(visitor):
        if by == "button":
            return visitor.press("retry", job_id)
        return visitor.do("retry", job_id, query=f"?status=failed&type={TYPE}", across=by == "everything")

    said = told(retry(operator))
    assert any("carries out another operator's order; give that order in your own name" in one for one in said), said
    assert row(queue, job_id).status == "failed"
    assert "1 job is queued again." in told(retry(chief))
    attempt(queue)
    assert statuses(queue, ids) == [None] * 3


@pytest.mark.parametrize("why", ["<script>alert(1)</script>", '" onload="x', "%s %(x)s {0}", "🦊" * 250])
def test_a_hostile_reason_travels_as_text(queue, operator, dead, small, why):
    ids = dead(3)
    operator.do("retry", "x", across=True, why=why)
    claim, result, _attendant = attempt(queue)
    assert result["done"] == 3
    assert set(LogEntry.objects.values_list("change_message", flat=True)) == {f"Retried: {why} (by job {claim.id})"}
    for page in (operator.page(claim.id), operator.client.get(reverse("admin:jobqueue_job_history", args=[ids[0]]))):
        assert "<script>alert" not in page.content.decode()
        assert 'onload="x' not in page.content.decode()


WITHOUT_ADMIN = """
import django
from django.conf import settings
settings.configure(INSTALLED_APPS=["jobqueue"], USE_TZ=True)
django.setup()
import sys
from jobqueue.handlers.registry import registry
assert registry.names == set(), registry.names
assert "jobqueue.jobs" in sys.modules
assert not [name for name in sys.modules if name.startswith(("jobqueue.orders", "django.contrib.admin"))]
"""


def test_without_the_admin_there_is_no_such_job():
    done = subprocess.run([sys.executable, "-c", WITHOUT_ADMIN], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_worker_does_a_selection_of_six_hundred(queue, alias, operator, dead, jobs, start_worker):
    ids = dead(600)
    answer = operator.do("retry", "x", query="?status=dead_letter", across=True, why="provider is back")
    job_id = Job.objects.using(alias).get(type=TYPE).pk
    assert answer.redirect_chain[0][0].endswith(f"{job_id}/change/")
    start_worker(
        "--skip-checks",
        settings="tests.admin.worker_settings",
        jobqueue={"DATABASE": alias},
        environment={"JOBQUEUE_TEST_APPLICATION": json.dumps({"database": database_of("default")})},
        constants={"jobqueue.orders.background.BATCH": 50},
    )
    (done,) = jobs.until("completed", job_id, seconds=60)
    assert done.result == {"done": 600, "left_alone": 0, "reasons": []}
    assert done.progress["percent"] == 100
    assert done.progress["of"] == 600
    assert statuses(queue, ids) == ["queued"] * 600
    assert entries() == ids
    page = operator.page(job_id)
    assert page.status_code == 200
    assert "600" in page.content.decode()
