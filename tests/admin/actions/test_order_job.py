"""Tests of orders that a job carries out: once, as long as the user is allowed to, and told."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import timedelta
from itertools import pairwise

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.urls import reverse

from jobqueue.api import enqueue
from jobqueue.clock import SYSTEM
from jobqueue.errors import Cancel, Interrupted, PayloadInvalid, Snooze
from jobqueue.handlers.registry import registry
from jobqueue.models import Job, Order, OrderedJob, OrderPart
from jobqueue.orders import Instruction, confirmation, execution
from jobqueue.orders.confirmation import confirm, stop
from jobqueue.orders.instruction import TYPE
from jobqueue.orders.selection import ask, collect
from jobqueue.policy.settling import completed, released
from jobqueue.records import Filter, Scope, WorkerRecord
from jobqueue.states import JobStatus
from jobqueue.testing.contract.harness import draft, put, put_all, settle, take_one
from tests.admin.conftest import Attendant, attempt, row, told
from tests.app.worker_jobs import note_run
from tests.conftest import ON_SQLITE
from tests.worker.conftest import jobs, ledger, start_worker
from tests.worker.harness import database_of

__all__ = ["jobs", "ledger", "start_worker"]

DEAD = Filter(statuses=frozenset({JobStatus.DEAD_LETTER}))


@pytest.fixture
def small(monkeypatch, at_once):
    """Make three jobs too many for a request."""
    for module in (confirmation, execution):
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


def given(visitor, wanted=DEAD, verb="retry", **values):
    """Give an order, without the admin's pages; return it."""
    user = visitor.user
    about = {"user_id": str(user.pk), "user_name": user.username, "of_staff": user.is_staff}
    order = collect(ask(Instruction(verb=verb, **about), wanted, "/back/"), 60)
    assert confirm(order, Instruction(verb=verb, **{**about, **values}), "a title")
    return Order.objects.using(order._state.db).get(pk=order.pk)


def statuses(queue, ids):
    found = dict(Job.objects.using(queue.alias).filter(pk__in=ids).values_list("pk", "status"))
    return [found.get(job_id) for job_id in ids]


def entries():
    return list(LogEntry.objects.order_by("pk").values_list("object_id", "object_repr", "change_message"))


# Given


def test_a_large_selection_becomes_an_order_to_whose_page_the_user_is_sent(queue, operator, dead, small):
    ids = dead(3)
    asked = operator.act("retry", "x", select_across="1", query="?status=dead_letter")
    assert "jobs are changed in the background, by a job of the queue" in asked.content.decode()
    answer = operator.agree(asked, why="provider is back", per_minute="60")
    order = Order.objects.using(queue.alias).get()
    assert answer.redirect_chain == [(reverse("admin:jobqueue_order_change", args=[order.pk]), 302)]
    page = answer.content.decode()
    for words in ("Retry 3 jobs", "all that matched status:dead_letter", "provider is back", "at most 60 a minute"):
        assert words in page
    assert "No live worker runs jobs of this type." in page
    assert f"{reverse('admin:jobqueue_job_changelist')}?status=dead_letter" in page
    assert row(queue, order.job_id).payload == {"order": order.pk}
    assert order.wanted == {"statuses": ["dead_letter"]}
    assert order.instruction == {
        "verb": "retry",
        "user_id": str(operator.user.pk),
        "user_name": operator.user.username,
        "of_staff": True,
        "why": "provider is back",
        "per_minute": 60,
    }
    assert statuses(queue, ids) == ["dead_letter"] * 3
    assert entries() == [(order.pk, "Retry 3 jobs", "Retried: provider is back")]


def test_with_a_live_worker_nobody_is_warned(queue, operator, dead, small):
    dead(3)
    now = queue.now()
    about = {"name": "one", "host": "host", "pid": 1, "version": "0", "processes": 1, "slots": 1}
    queue.workers.enlist(WorkerRecord(owner="host:1:x", started_at=now, seen_at=now, types=(TYPE,), **about))
    assert "No live worker" not in operator.do("retry", "x", across=True).content.decode()
    queue.workers.dismiss("host:1:x")


def test_a_live_worker_of_other_queues_does_not_do_it(queue, operator, dead, small):
    dead(3)
    now = queue.now()
    about = {"name": "one", "host": "host", "pid": 1, "version": "0", "processes": 1, "slots": 1, "queues": ("mail",)}
    queue.workers.enlist(WorkerRecord(owner="host:1:x", started_at=now, seen_at=now, types=(TYPE,), **about))
    assert "No live worker" in operator.do("retry", "x", across=True).content.decode()
    queue.workers.dismiss("host:1:x")


def test_an_order_does_not_wait_in_a_queue_that_was_paused(queue, operator, dead, small):
    dead(3)
    queue.operator.pause(Scope.QUEUE, "default")
    assert row(queue, given(operator).job_id).queue == "jobqueue"
    queue.operator.resume(Scope.QUEUE, "default")
    assert row(queue, given(operator, why="again").job_id).queue == "default"


# Carried out


def test_it_is_done_in_batches_told_and_logged_once(queue, operator, dead, small):
    ids = dead(5)
    order = given(operator, why="provider is back")
    _claim, result, attendant = attempt(queue)
    assert result == {"done": 5, "left_alone": 0, "reasons": []}
    assert statuses(queue, ids) == ["queued"] * 5
    assert [(one["percent"], one["done"], one["of"]) for one in attendant.reports] == [
        (40, 2, 5),
        (80, 4, 5),
        (100, 5, 5),
    ]
    assert entries() == [(order.pk, "a title", "Retried: provider is back")]
    assert touched(queue) == ids


def touched(queue):
    """The jobs whose history finds their order."""
    return list(OrderedJob.objects.using(queue.alias).order_by("pk").values_list("job_id", flat=True))


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
    given(operator, Filter(statuses=frozenset({JobStatus.QUEUED})), verb, **values)
    _claim, result, _attendant = attempt(queue)
    assert result["done"] == 3
    assert touched(queue) == ([] if verb == "purge" else ids)
    assert len(entries()) == 1
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
    given(operator)
    _claim, result, _attendant = attempt(queue)
    assert (result["done"], result["left_alone"]) == (4, 1)
    assert result["reasons"] == [
        {
            "reason": "cannot be queued again: a newer job holds its unique key 'one at a time'",
            "count": 1,
            "ids": held,
        }
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
    about = {"user_id": str(operator.user.pk), "user_name": operator.user.username}
    order = collect(ask(Instruction(verb="cancel", **about), wanted, "/back/"), 60)
    assert order.total == 1
    assert list(OrderPart.objects.using(queue.alias).values_list("ids", flat=True)) == [[ids[1]]]


def test_what_came_or_ended_since_is_left_alone(queue, operator, dead, small):
    ids = dead(3)
    given(operator)
    Job.objects.using(queue.alias).filter(pk=ids[0]).update(completed_at=SYSTEM.now())
    late = dead(1)
    _claim, result, _attendant = attempt(queue)
    assert statuses(queue, [*ids, *late]) == ["dead_letter", "queued", "queued", "dead_letter"]
    assert (result["done"], result["left_alone"]) == (2, 1)
    assert result["reasons"][0]["reason"] == "has ended since the jobs were counted"


@pytest.mark.parametrize("verb", ["cancel", "purge"])
@pytest.mark.parametrize("types", [frozenset(), frozenset({TYPE})])
def test_an_order_does_not_select_itself(queue, operator, small, verb, types):
    put_all(queue, *(draft() for _ in range(3)))
    put_all(queue, *(draft(TYPE) for _ in range(3)))
    wanted = Filter(types=types, statuses=frozenset({JobStatus.QUEUED, JobStatus.IN_PROGRESS}))
    job_id = given(operator, wanted, verb).job_id
    Job.objects.using(queue.alias).filter(type=TYPE).exclude(pk=job_id).update(scheduled_at="2099-01-01T00:00:00Z")
    claim, result, _attendant = attempt(queue)
    assert claim.id == job_id
    assert result["done"] == 3
    assert row(queue, job_id).cancel_requested_at is None
    assert settle(queue, completed(claim, "null")) == ()


def test_before_its_time_it_does_nothing(queue, operator, dead, monkeypatch):
    ids = dead(1)
    order = given(operator, verb="purge")
    Job.objects.using(queue.alias).filter(pk=order.job_id).update(scheduled_at=SYSTEM.now())
    with pytest.raises(Snooze):
        attempt(queue)
    assert statuses(queue, ids) == ["dead_letter"]


def test_it_stops_midway_and_says_how_far_it_came(queue, operator, dead, small):
    ids = dead(5)
    order = given(operator, verb="purge")
    with pytest.raises(Cancel, match="Stopped by me"):
        attempt(queue, then=lambda: stop(order.pk, operator.user.pk, "me"))
    assert statuses(queue, ids) == [None, None, *["dead_letter"] * 3]
    order.refresh_from_db()
    assert (order.state, order.done, order.total) == ("stopped", 2, 5)
    assert not stop(order.pk, operator.user.pk, "me")
    assert not OrderPart.objects.using(queue.alias).exists()


# Interrupted and run again


def test_after_a_stop_it_goes_on_where_it_was(queue, operator, dead, small):
    ids = dead(5)
    given(operator)
    claim = take_one(queue, types=frozenset({TYPE}))
    with pytest.raises(Interrupted):
        registry.get(TYPE).call(claim, Attendant(queue, claim.id, stop_after=1))
    assert statuses(queue, ids) == ["queued", "queued", *["dead_letter"] * 3]
    assert settle(queue, released(claim)) == ()
    claim, result, attendant = attempt(queue)
    assert claim.fence == 2
    assert result == {"done": 5, "left_alone": 0, "reasons": []}
    assert [one["done"] for one in attendant.reports] == [4, 5]
    assert touched(queue) == ids
    assert len(entries()) == 1


@pytest.mark.parametrize("verb", ["retry", "purge"])
def test_after_a_crash_that_swallowed_its_report_nothing_is_done_or_counted_twice(queue, operator, dead, small, verb):
    ids = dead(5)
    given(operator, verb=verb)
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
    assert touched(queue) == ([] if verb == "purge" else ids)
    if verb == "retry":
        assert row(queue, ids[0]).status == "dead_letter"


def test_a_pace_holds_over_batches_and_attempts(queue, operator, dead, small):
    ids = dead(6)
    given(operator, per_minute=1)
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
    given(operator)
    withdraw(operator.user, withdrawn)
    with pytest.raises(Cancel, match=operator.user.username):
        attempt(queue)
    assert statuses(queue, ids) == ["dead_letter"] * 3
    assert touched(queue) == []
    assert "no longer" in Order.objects.using(queue.alias).get().why_ended


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
    given(operator)
    with pytest.raises(
        Cancel, match=r"no longer has the permission\. Of 5 jobs, 2 were already changed and 0 left alone\."
    ):
        attempt(queue, then=lambda: withdraw(operator.user, "the verb"))
    assert statuses(queue, ids) == ["queued", "queued", *["dead_letter"] * 3]
    assert touched(queue) == ids[:2]


def test_who_was_let_in_without_being_of_the_staff_need_not_be(queue, sign_in, dead, small):
    ids, visitor = dead(3), sign_in("view_job", "retry_job", is_staff=False)
    given(visitor)
    attempt(queue)
    assert statuses(queue, ids) == ["queued"] * 3


@pytest.mark.parametrize("user_id", ["", "nobody", "0", "99999999999999999999999", "' OR 1=1 --"])
def test_a_user_that_cannot_be_is_nobody(user_id):
    assert Instruction(verb="retry", user_id=user_id, user_name="x").user() is None


# What it is


@pytest.mark.parametrize("bad", [{}, {"order": 1}, {"order": "x", "code": "import os"}, [], "x"])
def test_a_payload_that_is_no_order_is_never_begun(queue, bad):
    put(queue, TYPE, payload=json.dumps(bad))
    with pytest.raises(PayloadInvalid):
        attempt(queue)


def test_nobody_edits_an_order(queue, operator, dead, small):
    dead(3)
    job_id = given(operator).job_id
    Job.objects.using(queue.alias).filter(pk=job_id).update(status="dead_letter")
    address = reverse("admin:jobqueue_job_edit", args=[job_id])
    assert not registry.get(TYPE).editable
    for answer in (operator.client.get(address, follow=True), operator.client.post(address, {}, follow=True)):
        assert told(answer) == [f"Payloads of the type {TYPE} can't be edited."]


FORGERIES = {
    "unsealed": {"seal": ""},
    "with another's seal": {"seal": "0" * 64 + ":" + "A" * 43},
    "in another's name": {"instruction": {"verb": "purge", "user_id": "1", "user_name": "x"}},
    "for others": {"wanted": {"statuses": ["queued"]}},
    "for more": {"total": 9},
    "with another verb's permission": {"verb": "run_now"},
    "for another time": {"starts_at": SYSTEM.now() - timedelta(days=1)},
}


@pytest.mark.parametrize("forged", FORGERIES.values(), ids=FORGERIES)
def test_an_order_that_was_changed_is_not_carried_out(queue, operator, dead, small, forged):
    ids, order = dead(3), given(operator)
    Order.objects.using(queue.alias).filter(pk=order.pk).update(**forged)
    with pytest.raises(Cancel, match="This order was not confirmed"):
        attempt(queue)
    assert statuses(queue, ids) == ["dead_letter"] * 3


def test_an_order_for_other_ids_is_not_carried_out(queue, operator, dead, small):
    ids = dead(4)
    given(operator, Filter(ids=frozenset(ids[:3])))
    OrderPart.objects.using(queue.alias).update(ids=ids[1:])
    with pytest.raises(Cancel, match="This order was not confirmed"):
        attempt(queue)
    assert statuses(queue, ids) == ["dead_letter"] * 4


def test_who_may_only_write_jobs_carries_out_no_order(queue, operator, dead, small):
    ids, order = dead(3), given(operator)
    Job.objects.using(queue.alias).filter(type=TYPE).delete()
    for order_id in (order.pk, "nothing"):
        enqueue(TYPE, {"order": order_id})
        with pytest.raises(Cancel, match="No order was given to this job"):
            attempt(queue)
    assert statuses(queue, ids) == ["dead_letter"] * 3


@pytest.mark.parametrize("value", [0, -0.0, 1e22, 1e-7, 100.0, 0.1, 2**70, -(10**300), True, None, 'é\u202e🦊\\"'])
def test_an_order_is_the_one_that_was_given_whatever_a_database_makes_of_its_numbers(queue, operator, small, value):
    put_all(queue, *(draft(payload=json.dumps({"a": value})) for _ in range(3)))
    order = given(operator, Filter(statuses=frozenset({JobStatus.QUEUED}), payload=(("a", value),)), "purge", why="é🦊")
    _claim, result, _attendant = attempt(queue)
    assert result["done"] == order.total


@pytest.mark.parametrize("by", ["button", "list", "everything"])
def test_an_order_is_given_again_only_by_who_gave_it(queue, operator, sign_in, dead, small, by):
    ids, chief = dead(3), sign_in(is_superuser=True)
    job_id = given(chief, verb="purge").job_id
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


@ON_SQLITE
@pytest.mark.parametrize("why", ["<script>alert(1)</script>", '" onload="x', "%s %(x)s {0}", "🦊" * 250])
def test_a_hostile_reason_travels_as_text(queue, operator, dead, small, why):
    ids = dead(3)
    operator.do("retry", "x", across=True, why=why)
    claim, result, _attendant = attempt(queue)
    assert result["done"] == 3
    assert set(LogEntry.objects.values_list("change_message", flat=True)) == {f"Retried: {why}"}
    order = Order.objects.using(queue.alias).get().pk
    addresses = (
        reverse("admin:jobqueue_job_change", args=[claim.id]),
        reverse("admin:jobqueue_job_change", args=[ids[0]]),
        reverse("admin:jobqueue_job_history", args=[ids[0]]),
        reverse("admin:jobqueue_order_change", args=[order]),
        reverse("admin:jobqueue_order_changelist"),
    )
    for address in addresses:
        page = operator.client.get(address)
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
    order = Order.objects.using(alias).get()
    job_id = order.job_id
    assert answer.redirect_chain[0][0].endswith(f"{order.pk}/change/")
    start_worker(
        "--skip-checks",
        settings="tests.admin.worker_settings",
        jobqueue={"DATABASE": alias},
        environment={"JOBQUEUE_TEST_APPLICATION": json.dumps({"database": database_of("default")})},
        constants={"jobqueue.orders.execution.BATCH": 50},
    )
    (done,) = jobs.until("completed", job_id, seconds=60)
    assert done.result == {"done": 600, "left_alone": 0, "reasons": []}
    assert done.progress["percent"] == 100
    assert done.progress["of"] == 600
    assert statuses(queue, ids) == ["queued"] * 600
    assert entries() == [(order.pk, "Retry 600 jobs", "Retried: provider is back")]
    for page in (operator.page(job_id), operator.client.get(reverse("admin:jobqueue_order_change", args=[order.pk]))):
        assert page.status_code == 200
        assert "600" in page.content.decode()


def test_a_purge_deletes_what_it_announced_while_workers_run(queue, alias, operator, at_once, jobs, start_worker):
    put_all(queue, *(draft() for _ in range(1200)))
    rows = Job.objects.using(alias)
    rows.update(status="completed", completed_at=SYSTEM.now() - timedelta(minutes=5))
    announced = set(rows.values_list("pk", flat=True))
    start_worker(
        "--skip-checks",
        settings="tests.admin.worker_settings",
        jobqueue={"DATABASE": alias},
        environment={"JOBQUEUE_TEST_APPLICATION": json.dumps({"database": database_of("default")})},
        constants={"jobqueue.orders.execution.BATCH": 50},
    )
    before = [note_run.enqueue(number=number).id for number in range(30)]
    jobs.until("completed", *before)
    asked = operator.everything("purge", q="status:completed")
    assert asked.context["affected"].total == 1230
    late = [note_run.enqueue(number=number).id for number in range(30)]
    operator.agree(asked)
    late += [note_run.enqueue(number=number).id for number in range(30)]
    order = Order.objects.using(alias).get()
    jobs.until("completed", order.job_id, *late, seconds=60)
    order.refresh_from_db()
    assert (order.state, order.done, order.left_alone) == ("done", 1230, 0)
    assert set(rows.values_list("pk", flat=True)) == {order.job_id, *late}
    assert not announced & set(late)
