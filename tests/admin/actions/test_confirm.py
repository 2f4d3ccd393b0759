"""Tests of the confirmation page: its counts, its scope, when it asks again, and what it leaves alone."""

from __future__ import annotations

import json
from datetime import timedelta
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connections
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from jobqueue.admin.actions import confirm
from jobqueue.admin.search import results
from jobqueue.clock import SYSTEM
from jobqueue.models import Job
from jobqueue.orders import VERBS
from jobqueue.orders.background import TYPE
from jobqueue.records import Filter, Scope
from jobqueue.states import JobStatus
from jobqueue.testing.contract.harness import draft, put, put_all
from tests.admin.conftest import PERMISSIONS, STATUSES, row, told
from tests.admin.test_pages import Inline

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


@pytest.mark.parametrize("verb", PERMISSIONS)
@pytest.mark.parametrize("across", [False, True])
def test_every_action_of_the_list_asks_first(queue, operator, job_in, verb, across):
    ids = [job_in(status, **(LATER if status == "queued" else {})) for status in STATUSES]
    before = list(Job.objects.using(queue.alias).order_by("pk").values())
    asked = operator.act(verb, *ids, select_across="1" if across else "0")
    assert asked.context["verb"].name == verb
    assert list(Job.objects.using(queue.alias).order_by("pk").values()) == before
    assert LogEntry.objects.count() == 0
    assert Inline(asked.content.decode()).found == []
    taken = [status for status in STATUSES if VERBS[verb].accepts(status)]
    usual = [status for status in STATUSES if status in VERBS[verb].default_statuses]
    assert asked.context["affected"].expected == len(usual if across else taken)
    operator.agree(asked, **TOLD.get(verb, {}))
    assert LogEntry.objects.count() == len(usual if across else taken)


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
    for line in ("failed: 1", "dead letter: 2", "in progress (1) and completed (1): only failed jobs and dead letters"):
        assert line in page
    assert all(job_id in page for job_id in ids)
    page = operator.act("retry", *ids, select_across="1").content.decode()
    assert "<strong>2 jobs will be queued again" in page
    assert "failed: they were stopped on purpose; filter by this status to include them" in page


def test_where_nothing_fits_nothing_can_be_agreed_to(queue, operator, job_in):
    asked = operator.act("retry", job_in("completed"))
    page = asked.content.decode()
    assert "There is nothing to do" in page
    assert 'name="confirmed"' not in page
    assert "completed (1): only failed jobs and dead letters can be retried" in page


def test_a_count_stops_at_the_cap_and_says_so(queue, operator, monkeypatch):
    monkeypatch.setattr(results, "CAP", 3)
    monkeypatch.setattr(confirm, "CAP", 3)
    put_all(queue, *(draft() for _ in range(5)))
    asked = operator.act("cancel", "x", select_across="1")
    assert "<strong>3+ jobs will end as failed" in asked.content.decode()
    # Whoever agreed to more than the cap agreed to any number.
    put_all(queue, *(draft() for _ in range(5)))
    operator.agree(asked)
    assert Job.objects.using(queue.alias).filter(type=TYPE).exists()


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


# Asked again


def test_it_asks_again_when_more_match_than_it_said(queue, operator, job_in):
    ids = [job_in("dead_letter"), job_in("dead_letter")]
    asked = operator.act("purge", ids[0], select_across="1", query="?status=dead_letter")
    assert asked.context["affected"].expected == 2
    job_in("dead_letter")
    kept = job_in("completed")
    again = operator.agree(asked)
    assert again.context["affected"].expected == 3
    assert len(statuses(queue)) == 4
    assert told(operator.agree(again)) == ["3 jobs are deleted, with their history."]
    assert list(statuses(queue)) == [kept]


def test_fewer_than_were_agreed_to_are_done_at_once(queue, operator, job_in):
    ids = [job_in("dead_letter"), job_in("dead_letter")]
    asked = operator.act("retry", *ids)
    queue.operator.purge(ids[:1])
    assert told(operator.agree(asked)) == [
        "1 job is queued again.",
        f"1 job was left alone: it is gone or no longer in this list ({ids[0]}).",
    ]


@pytest.mark.parametrize("expected", ["", "0", "-1", "x", "1e9", "9" * 5_000])
def test_an_agreement_in_nonsense_asks_again(queue, operator, job_in, expected):
    job_id = job_in("dead_letter")
    agreed = {"confirmed": "yes", "expected": expected}
    for answer in (
        operator.press("purge", job_id, **agreed),
        operator.act("purge", job_id, **agreed),
        operator.act("purge", job_id, select_across="1", **agreed),
    ):
        assert "<strong>1 job will be deleted" in answer.content.decode()
    assert row(queue, job_id).status == "dead_letter"


def test_what_was_told_is_still_there_when_it_asks_again(queue, operator, job_in):
    job_in("dead_letter")
    asked = operator.act("retry", "x", select_across="1")
    job_in("dead_letter")
    page = operator.agree(asked, why="provider is back", per_minute="7").content.decode()
    assert 'value="provider is back"' in page
    assert 'value="7"' in page


def test_a_purge_of_one_job_asks_and_leads_back_to_it(queue, operator, job_in):
    job_id = job_in("dead_letter")
    answer = operator.press("purge", job_id)
    assert "<strong>1 job will be deleted" in answer.content.decode()
    assert answer.context["back"] == reverse("admin:jobqueue_job_change", args=[job_id])
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
    agreed = {"select_across": "1", "confirmed": "yes", "expected": "1"}
    for answer in (operator.agree(asked, **data), operator.act(verb, job_id, **agreed, **data)):
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
    operator.press("reschedule", job_id, confirmed="yes", expected="1", scheduled_at="2099-07-01T12:30")
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
    assert asked.context["affected"].expected == 2
    answer = operator.agree(asked)
    assert answer.redirect_chain == [(f"{reverse('admin:jobqueue_job_changelist')}?q=tenant:acme&type=resize", 302)]
    assert {job_id for job_id, status in statuses(queue).items() if status == "failed"} == set(mine)
    assert {job_id for job_id, status in statuses(queue).items() if status == "queued"} == set(others)


def test_a_moment_that_was_said_relative_to_now_is_the_one_that_was_shown(queue, operator, job_in):
    job_id = job_in("dead_letter")
    asked = operator.act("retry", "x", select_across="1", query="?q=after:1h")
    assert asked.context["affected"].expected == 1
    wanted, _back = confirm.unsealed(dict(asked.context["kept"])["sealed"])
    # By the time of the answer it is older than an hour, and meant all the same.
    Job.objects.using(queue.alias).filter(pk=job_id).update(created_at=wanted.created_after)
    assert told(operator.agree(asked)) == ["1 job is queued again."]


def test_everything_among_dead_letters_is_dead_letters(queue, operator, job_in):
    dead, stopped = job_in("dead_letter"), job_in("failed")
    operator.do("purge", "x", model="deadletter", across=True)
    assert statuses(queue) == {stopped: "failed"}
    assert dead not in statuses(queue)


def test_a_status_that_is_named_is_meant_even_if_it_is_not_the_usual_one(queue, operator, job_in):
    stopped = job_in("failed")
    assert told(operator.do("retry", "x", query="?status=failed", across=True)) == ["1 job is queued again."]
    assert row(queue, stopped).status == "queued"


def test_a_query_that_cannot_be_read_is_told_and_changes_nothing(queue, operator, job_in):
    job_id = job_in("dead_letter")
    answer = operator.act("retry", "x", select_across="1", query="?q=nonsense:1", confirmed="yes", expected="9")
    assert answer.status_code == 200
    assert row(queue, job_id).status == "dead_letter"


@pytest.mark.parametrize("wanted", [Filter(fingerprint="\0"), Filter(payload=(("a", ["\0"]),)), Filter(error="a\0")])
def test_a_filter_that_no_database_could_be_asked_for_is_refused(queue, operator, job_in, wanted):
    job_in("dead_letter")
    address = reverse("admin:jobqueue_job_everything_retry")
    assert operator.client.post(address, {"sealed": confirm.sealed(wanted, "/")}).status_code == 400


def test_old_orders_are_not_repeated_by_a_filter_that_does_not_name_them(queue, operator):
    own = json.dumps({"order": {"user_id": str(operator.user.pk)}})
    order, other = put_all(queue, draft(TYPE, payload=own), draft())
    Job.objects.using(queue.alias).update(status="dead_letter")
    done, left = told(operator.do("retry", "x", across=True))
    assert done == "1 job is queued again."
    assert (
        left == f"1 job was left alone: it carries out an operator's order; filter by its type to include it ({order})."
    )
    assert statuses(queue) == {order: "dead_letter", other: "queued"}
    assert told(operator.do("retry", "x", query=f"?q=id:{order}", across=True)) == ["1 job is queued again."]
    queue.operator.cancel([order])
    assert told(operator.do("retry", "x", query=f"?q=type:{TYPE}&status=failed", across=True)) == [
        "1 job is queued again."
    ]


def test_a_sealed_filter_comes_back_as_it_was():
    wanted = Filter(statuses=frozenset({JobStatus.FAILED}), created_after=SYSTEM.now(), payload=(("a.b", 7),))
    assert confirm.unsealed(confirm.sealed(wanted, "/back/?q=x")) == (wanted, "/back/?q=x")
