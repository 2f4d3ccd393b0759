"""Tests of the question before an order: its exact number, its scope, its answer, and what it leaves alone."""

from __future__ import annotations

from datetime import timedelta
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connections
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from jobqueue.admin.actions import question
from jobqueue.clock import SYSTEM
from jobqueue.models import Job, Order, OrderPart
from jobqueue.orders import VERBS, selection
from jobqueue.orders.instruction import TYPE
from jobqueue.records import Filter, Scope
from jobqueue.testing.contract.harness import draft, put, put_all
from tests.admin.conftest import PERMISSIONS, STATUSES, carry_out, row, told
from tests.admin.test_pages import Inline

#: What a page asks does not depend on the database; what follows from an answer, other tests show on both.
SQLITE_ALONE = True

TOLD = {"reschedule": {"amount": "2", "unit": "hours"}, "prioritise": {"priority": "1"}, "move": {"queue": "mail"}}
LATER = {"delay": timedelta(days=1)}


class Fields(HTMLParser):
    """Finds the fields of a page, their labels and what they are described by."""

    def __init__(self, page):
        super().__init__()
        self.fields, self.labels, self.ids = {}, set(), set()
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.ids.add(given.get("id"))
        if tag == "label":
            self.labels.add(given.get("for"))
        if tag in ("input", "select", "textarea") and given.get("type") != "hidden":
            self.fields[given.get("name")] = given


def statuses(queue):
    return dict(Job.objects.using(queue.alias).values_list("pk", "status"))


def orders(queue):
    return Order.objects.using(queue.alias)


@pytest.mark.parametrize("verb", PERMISSIONS)
@pytest.mark.parametrize("across", [False, True])
def test_every_action_of_the_list_asks_first(queue, operator, job_in, at_once, verb, across):
    ids = [job_in(status, **(LATER if status == "queued" else {})) for status in STATUSES]
    before = list(Job.objects.using(queue.alias).order_by("pk").values())
    asked = operator.act(verb, *ids, select_across="1" if across else "0")
    assert asked.context["verb"].name == verb
    assert list(Job.objects.using(queue.alias).order_by("pk").values()) == before
    assert LogEntry.objects.count() == 0
    assert Inline(asked.content.decode()).found == []
    taken = [status for status in STATUSES if VERBS[verb].accepts(status)]
    usual = [status for status in STATUSES if status in VERBS[verb].default_statuses]
    assert asked.context["affected"].total == len(usual if across else taken)
    operator.agree(asked, **TOLD.get(verb, {}))
    if verb == "purge":
        carry_out(queue)
    order = orders(queue).get()
    assert (order.state, order.done, order.left_alone) == ("done", order.total, 0)
    assert order.total == len(usual if across else taken)
    assert LogEntry.objects.count() == 1
    assert not OrderPart.objects.using(queue.alias).exists()


@pytest.mark.parametrize("verb", PERMISSIONS)
def test_every_field_has_a_label_and_every_description_is_there(queue, operator, job_in, verb):
    job_id = job_in("dead_letter" if verb in ("retry", "purge") else "queued")
    pages = [operator.act(verb, job_id)]
    pages.append(operator.agree(pages[0], why="x\ny"))
    for page in pages:
        found = Fields(page.content.decode())
        own = {name: given for name, given in found.fields.items() if (given.get("id") or "").startswith("id_")}
        assert "why" in own
        for given in own.values():
            assert given["id"] in found.labels
            assert set((given.get("aria-describedby") or "").split()) <= found.ids
    assert 'aria-invalid="true"' in pages[1].content.decode()


def test_it_says_how_many_of_which_status_and_what_is_left_alone(queue, operator, job_in):
    ids = [job_in("dead_letter"), job_in("dead_letter"), job_in("failed"), job_in("completed"), job_in("in_progress")]
    page = operator.act("retry", *ids).content.decode()
    assert "<strong>3 jobs will be queued again" in page
    for line in (
        "cancelled: 1",
        "dead letter: 2",
        "in progress (1) and completed (1): only cancelled jobs and dead letters",
    ):
        assert line in page
    assert [job_id in page for job_id in ids] == [True, True, True, False, False]
    page = operator.act("retry", *ids, select_across="1").content.decode()
    assert "<strong>2 jobs will be queued again" in page
    assert "cancelled: they were cancelled on purpose; filter by this status to include them" in page


def test_where_nothing_fits_nothing_can_be_agreed_to(queue, operator, job_in):
    asked = operator.act("retry", job_in("completed"))
    page = asked.content.decode()
    assert "There is nothing to do" in page
    assert 'name="confirmed"' not in page
    assert "completed (1): only cancelled jobs and dead letters can be retried" in page


# Counted


def test_the_number_is_exact_however_little_a_list_looks_at(queue, operator, monkeypatch):
    monkeypatch.setattr(selection, "STRIDE", 3)
    mine = put_all(queue, *(draft(tenant="acme") for _ in range(7)))
    put_all(queue, *(draft() for _ in range(20)))
    asked = operator.everything("cancel", q="tenant:acme")
    assert asked.context["affected"].total == 7
    assert "tenant:acme" in asked.content.decode()
    assert told(operator.agree(asked)) == ["7 jobs are cancelled; those that are running are asked to stop."]
    assert {job_id for job_id, status in statuses(queue).items() if status == "failed"} == set(mine)


def test_what_takes_long_to_count_is_counted_while_the_page_waits(queue, operator, monkeypatch):
    monkeypatch.setattr(selection, "STRIDE", 2)
    monkeypatch.setattr(question, "COUNTING", 0)
    ids = put_all(queue, *(draft() for _ in range(5)))
    Job.objects.using(queue.alias).update(status="completed", completed_at=SYSTEM.now())
    page = operator.everything("purge", q="status:completed")
    address = page.redirect_chain[-1][0]
    numbers = []
    while page.context["affected"] is None:
        assert page.headers["Refresh"] == f"1; url={address}"
        assert operator.client.post(address, {"why": "now"}).status_code == 200
        numbers.append(orders(queue).get().total)
        page = operator.client.get(address)
    assert numbers == sorted(numbers)
    assert "Refresh" not in page.headers
    assert page.context["affected"].total == len(ids)
    assert orders(queue).get().state == "asked"


def test_what_is_announced_is_what_is_touched(queue, operator, job_in, at_once):
    ids = [job_in("completed") for _ in range(4)]
    asked = operator.everything("purge", q="status:completed")
    assert asked.context["affected"].total == 4
    late = job_in("completed")
    queue.operator.purge(ids[:1])
    rows = Job.objects.using(queue.alias)
    rows.filter(pk=ids[1]).update(status="queued", completed_at=None)
    rows.filter(pk=ids[2]).update(completed_at=SYSTEM.now() + timedelta(seconds=1))
    operator.agree(asked)
    carry_out(queue)
    order = orders(queue).get()
    assert (order.total, order.done, order.left_alone) == (4, 1, 3)
    assert set(statuses(queue)) >= {ids[1], ids[2], late}
    assert ids[3] not in statuses(queue)
    page = operator.client.get(reverse("admin:jobqueue_order_change", args=[order.pk])).content.decode()
    for reason in (
        "does not exist",
        "has changed since the jobs were counted",
        "has ended since the jobs were counted",
    ):
        assert reason in page


def test_two_pages_that_count_at_once_count_nothing_twice(queue, operator, monkeypatch):
    monkeypatch.setattr(selection, "STRIDE", 2)
    put_all(queue, *(draft() for _ in range(5)))
    operator.everything("cancel", q="status:queued")
    order = orders(queue).get()
    OrderPart.objects.using(queue.alias).all().delete()
    orders(queue).update(
        total=0, steps=0, counted_at=None, account=order.account | {"at": 0, "after": None, "found": {}}
    )
    first, second = orders(queue).get(), orders(queue).get()
    selection.collect(first, 0)
    assert selection.collect(second, 0).total == 2
    assert selection.collect(orders(queue).get(), 60).total == 5


def test_a_question_costs_a_bounded_number_of_queries(queue, operator, job_in):
    counts = []
    for _ in range(2):
        for status in ("in_progress", "completed", "failed", "dead_letter"):
            job_in(status)
        with CaptureQueriesContext(connections[queue.alias]) as queries:
            operator.act("purge", "x", select_across="1")
        counts.append(len(queries))
        ids = put_all(queue, *(draft() for _ in range(30)))
        Job.objects.using(queue.alias).filter(pk__in=ids).update(status="completed")
    assert counts[0] == counts[1]


# Asked and answered


def test_a_question_survives_signing_in_again_and_going_back(queue, operator, job_in):
    job_id = job_in("dead_letter")
    asked = operator.act("retry", job_id, query="?status=dead_letter")
    address = asked.context["address"]
    operator.client.logout()
    sent = operator.client.post(address, {"why": "x"})
    assert reverse("admin:login") in sent.headers["Location"]
    operator.client.force_login(operator.user)
    again = operator.client.get(address)
    assert again.context["affected"].total == 1
    answer = operator.agree(again)
    assert answer.redirect_chain == [(f"{reverse('admin:jobqueue_job_changelist')}?status=dead_letter", 302)]
    assert row(queue, job_id).status == "queued"


def test_a_question_is_answered_once(queue, operator, job_in):
    job_id = job_in("dead_letter")
    asked = operator.act("retry", job_id)
    operator.agree(asked)
    Job.objects.using(queue.alias).filter(pk=job_id).update(status="dead_letter")
    for answer in (operator.agree(asked), operator.client.get(asked.context["address"], follow=True)):
        assert told(answer) == ["You have answered this question already."]
        assert answer.redirect_chain[-1][0] == reverse("admin:jobqueue_order_change", args=[orders(queue).get().pk])
    assert row(queue, job_id).status == "dead_letter"
    assert LogEntry.objects.count() == 1


def test_only_who_asked_may_answer(queue, operator, sign_in, job_in):
    job_id = job_in("dead_letter")
    address = operator.act("purge", job_id).context["address"]
    for answer in (
        sign_in(is_superuser=True).client.post(address, follow=True),
        operator.client.get(address.replace(orders(queue).get().pk, "nothing"), follow=True),
        operator.client.post(reverse("admin:jobqueue_deadletter_question", args=["\0"]), follow=True),
    ):
        assert told(answer) == ["This question can no longer be answered. Choose the jobs again."]
    assert orders(queue).get().state == "asked"


def test_old_questions_are_removed(queue, operator, job_in):
    job_id = job_in("dead_letter")
    address = operator.act("retry", job_id).context["address"]
    orders(queue).update(asked_at=SYSTEM.now() - selection.ANSWERABLE - timedelta(minutes=1))
    operator.act("retry", job_id)
    assert told(operator.client.get(address, follow=True))[0].startswith("This question can no longer be answered")
    assert orders(queue).count() == OrderPart.objects.using(queue.alias).count() == 1


def test_questions_of_a_user_are_bounded_and_no_order_is_removed(queue, operator, sign_in, job_in, monkeypatch):
    monkeypatch.setattr(selection, "OPEN_QUESTIONS", 3)
    job_id = job_in("dead_letter")
    operator.agree(operator.act("retry", job_id))
    of_another = sign_in(is_superuser=True).everything("retry", q="status:dead_letter").context["address"]
    first, *others = [operator.everything("cancel", q="status:queued").context["address"] for _ in range(5)]
    assert sorted(orders(queue).values_list("state", flat=True)) == ["asked"] * 4 + ["done"]
    assert orders(queue).filter(state="asked", pk=of_another.rstrip("/").rpartition("/")[2]).exists()
    assert told(operator.client.get(first, follow=True))[0].startswith("This question can no longer be answered")
    assert operator.client.get(others[-1]).context["affected"].total == 1


def test_a_question_that_is_removed_while_it_counts_is_told(queue, operator, monkeypatch):
    put_all(queue, draft())

    def step(order):
        orders(queue).filter(pk=order.pk).delete()

    monkeypatch.setattr(selection, "_step", step)
    answer = operator.client.get(reverse("admin:jobqueue_job_everything_cancel"), {"q": "status:queued"}, follow=True)
    assert told(answer) == ["This question can no longer be answered. Choose the jobs again."]


def test_a_large_purge_takes_the_number_typed_in(queue, operator, monkeypatch):
    monkeypatch.setattr("jobqueue.admin.actions.forms.TYPED_ABOVE", 2)
    put_all(queue, *(draft() for _ in range(3)))
    Job.objects.using(queue.alias).update(status="completed", completed_at=SYSTEM.now())
    asked = operator.everything("purge", q="status:completed")
    assert "Type 3 to confirm." in asked.content.decode()
    for number in ("", "4", "all", "33", "\uff13"):
        assert operator.agree(asked, number=number).context["form"].errors["number"]
    assert orders(queue).get().state == "asked"
    operator.agree(asked, number=" 3.")
    assert orders(queue).get().state == "waiting"
    assert operator.everything("cancel", q="status:queued").context["form"].fields.keys() == {"why"}


def test_a_purge_waits_and_can_be_stopped(queue, operator, job_in):
    job_id = job_in("completed")
    answer = operator.do("purge", job_id)
    order = orders(queue).get()
    assert order.starts_at - order.given_at == timedelta(seconds=10)
    assert answer.redirect_chain[-1][0] == reverse("admin:jobqueue_order_change", args=[order.pk])
    assert "The order begins in" in answer.content.decode()
    assert row(queue, order.job_id).scheduled_at == order.starts_at
    stopped = operator.client.post(answer.context["stop_address"], follow=True)
    assert told(stopped) == ["The order is stopped."]
    assert f"Stopped by {operator.user.username}." in stopped.content.decode()
    assert (row(queue, job_id).status, row(queue, order.job_id).status) == ("completed", "failed")
    assert LogEntry.objects.filter(object_id=order.pk).count() == 2


def test_a_purge_of_one_job_asks_and_leads_back_to_the_list(queue, operator, job_in):
    job_id = job_in("dead_letter")
    answer = operator.press("purge", job_id, why="of no use")
    assert "<strong>1 job will be deleted" in answer.content.decode()
    assert 'value="of no use"' in answer.content.decode()
    assert answer.context["back"] == reverse("admin:jobqueue_job_changelist")
    assert row(queue, job_id).status == "dead_letter"


@pytest.mark.parametrize("verb", ["retry", "run_now", "cancel"])
def test_what_destroys_nothing_and_needs_nothing_is_one_click_on_a_jobs_page(queue, operator, job_in, verb):
    job_id = job_in("dead_letter" if verb == "retry" else "queued", **(LATER if verb == "run_now" else {}))
    answer = operator.press(verb, job_id)
    assert answer.redirect_chain == [(reverse("admin:jobqueue_job_change", args=[job_id]), 302)]
    assert LogEntry.objects.count() == 1


# What it takes


@pytest.mark.parametrize(
    ("verb", "data", "field"),
    [
        ("retry", {"per_minute": "0"}, "per_minute"),
        ("retry", {"per_minute": "60001"}, "per_minute"),
        ("retry", {"per_minute": "fast"}, "per_minute"),
        ("reschedule", {}, "__all__"),
        ("reschedule", {"amount": "2", "unit": "hours", "scheduled_at": "2099-01-01T00:00"}, "__all__"),
        ("reschedule", {"amount": "0", "unit": "hours"}, "amount"),
        ("reschedule", {"amount": "3651", "unit": "days"}, "amount"),
        ("reschedule", {"amount": "2", "unit": "fortnights"}, "unit"),
        ("reschedule", {"scheduled_at": "soon"}, "scheduled_at"),
        ("reschedule", {"scheduled_at": "2001-01-01T00:00"}, "scheduled_at"),
        ("reschedule", {"scheduled_at": "9999-12-31T23:59"}, "scheduled_at"),
        ("reschedule", {"scheduled_at": "2099-03-29T02:30"}, "scheduled_at"),  # clocks go forward over it
        ("prioritise", {}, "priority"),
        ("prioritise", {"priority": "0"}, "priority"),
        ("prioritise", {"priority": "11"}, "priority"),
        ("prioritise", {"priority": "2.5"}, "priority"),
        ("move", {}, "queue"),
        ("move", {"queue": "no such queue"}, "queue"),
        ("move", {"queue": "<script>"}, "queue"),
        ("move", {"queue": "x" * 101}, "queue"),
        ("move", {"queue": "\0"}, "queue"),
    ],
)
def test_a_value_that_will_not_do_asks_again_beside_the_field(queue, operator, job_in, verb, data, field):
    job_id = job_in("dead_letter" if verb == "retry" else "queued")
    before = list(Job.objects.using(queue.alias).values())
    asked = operator.act(verb, job_id)
    for answer in (operator.agree(asked, **data), operator.agree(operator.everything(verb), **data)):
        assert field in answer.context["form"].errors
        assert 'class="errorlist' in answer.content.decode()
    assert list(Job.objects.using(queue.alias).values()) == before
    assert LogEntry.objects.count() == 0


def test_a_pace_spreads_retries_over_time(queue, operator, job_in):
    ids = [job_in("dead_letter") for _ in range(3)]
    began = SYSTEM.now()
    operator.do("retry", *ids, per_minute="2")
    waits = sorted((row(queue, job_id).scheduled_at - began).total_seconds() for job_id in ids)
    assert [round(after - before) for before, after in pairwise(waits)] == [30, 30]
    assert waits[0] < 20


def test_a_length_of_time_is_counted_from_the_answer(queue, operator):
    ids = put_all(queue, draft(), draft())
    began = SYSTEM.now()
    operator.do("reschedule", *ids, amount="3", unit="days")
    waits = {row(queue, job_id).scheduled_at for job_id in ids}
    assert len(waits) == 1
    assert abs(waits.pop() - began - timedelta(days=3)) < timedelta(minutes=1)


def test_a_moment_is_read_without_time_zones_too(queue, operator, settings):
    settings.USE_TZ = False
    job_id = put(queue)
    operator.press("reschedule", job_id, agreed=True, scheduled_at="2099-07-01T12:30")
    assert row(queue, job_id).scheduled_at.isoformat().startswith("2099-07-01T10:30:00")


def test_known_queues_are_offered(queue, operator):
    queue.operator.pause(Scope.QUEUE, "closed <b>")
    page = operator.act("move", put(queue)).content.decode()
    assert '<option value="images">' in page
    assert '<option value="closed &lt;b&gt;">' in page


# Everything that a filter lets through


def test_the_list_is_meant_as_it_was_filtered_and_searched(queue, operator):
    mine = put_all(queue, draft(tenant="acme"), draft(tenant="acme"))
    others = put_all(queue, draft(), draft("rare", tenant="acme"))
    asked = operator.act("cancel", "x", select_across="1", query="?q=tenant:acme&type=resize")
    assert asked.context["affected"].total == 2
    answer = operator.agree(asked)
    assert answer.redirect_chain == [(f"{reverse('admin:jobqueue_job_changelist')}?q=tenant:acme&type=resize", 302)]
    assert {job_id for job_id, status in statuses(queue).items() if status == "failed"} == set(mine)
    assert {job_id for job_id, status in statuses(queue).items() if status == "queued"} == set(others)


def test_a_moment_that_was_said_relative_to_now_is_the_one_that_was_shown(queue, operator, job_in):
    job_id = job_in("dead_letter")
    asked = operator.act("retry", "x", select_across="1", query="?q=after:1h")
    assert asked.context["affected"].total == 1
    # By the time of the answer it is older than an hour, and meant all the same.
    Job.objects.using(queue.alias).filter(pk=job_id).update(created_at=SYSTEM.now() - timedelta(hours=2))
    assert told(operator.agree(asked)) == ["1 job is queued again."]


def test_everything_among_dead_letters_is_dead_letters(queue, operator, job_in, at_once):
    dead, stopped = job_in("dead_letter"), job_in("failed")
    operator.do("purge", "x", model="deadletter", across=True)
    carry_out(queue)
    assert dead not in statuses(queue)
    assert statuses(queue)[stopped] == "failed"


def test_a_status_that_is_named_is_meant_even_if_it_is_not_the_usual_one(queue, operator, job_in):
    stopped = job_in("failed")
    assert told(operator.do("retry", "x", query="?status=failed", across=True)) == ["1 job is queued again."]
    assert row(queue, stopped).status == "queued"


def test_a_query_that_cannot_be_read_is_told_and_changes_nothing(queue, operator, job_in):
    job_id = job_in("dead_letter")
    for answer in (
        operator.act("retry", "x", select_across="1", query="?q=nonsense:1"),
        operator.everything("retry", q="nonsense:1"),
    ):
        assert "There is no “nonsense:”" in answer.content.decode()
    assert row(queue, job_id).status == "dead_letter"
    assert not orders(queue).exists()


@pytest.mark.parametrize("wanted", [Filter(fingerprint="\0"), Filter(payload=(("a", ["\0"]),)), Filter(error="a\0")])
def test_a_filter_that_no_database_could_be_asked_for_is_refused(queue, operator, monkeypatch, wanted):
    monkeypatch.setattr("jobqueue.admin.lists.jobs.ReadingJobs.wanted", lambda *_args: wanted)
    assert operator.everything("retry").status_code == 400


def test_old_orders_are_not_repeated_by_a_filter_that_does_not_name_them(queue, operator, job_in):
    other = job_in("completed")
    operator.do("purge", other)
    order = orders(queue).get().job_id
    Job.objects.using(queue.alias).update(status="dead_letter")
    assert told(operator.do("retry", "x", across=True)) == ["1 job is queued again."]
    assert statuses(queue) == {order: "dead_letter", other: "queued"}
    assert told(operator.do("retry", "x", query=f"?q=id:{order}", across=True)) == ["1 job is queued again."]
    queue.operator.cancel([order])
    assert told(operator.do("retry", "x", query=f"?q=type:{TYPE}&status=failed", across=True)) == [
        "1 job is queued again."
    ]
