"""Tests of the pages of orders: in words, with progress, and with what became of the jobs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.db.models import JSONField, Value
from django.urls import reverse

from jobqueue.admin.orders import jobs as jobs_of_orders
from jobqueue.admin.orders import orders as pages
from jobqueue.clock import SYSTEM
from jobqueue.models import Job, Order, OrderedJob
from jobqueue.policy.settling import completed
from jobqueue.records import Dead
from jobqueue.testing.contract.harness import draft, failing, put_all, settle, take_one
from tests.admin.conftest import row, told
from tests.admin.outline import stumbles
from tests.admin.test_pages import Inline
from tests.conftest import ON_SQLITE


@pytest.fixture
def dead(queue):
    """Four dead letters."""
    ids = put_all(queue, *(draft() for _ in range(4)))
    ended = {"status": "dead_letter", "completed_at": SYSTEM.now() - timedelta(minutes=5)}
    Job.objects.using(queue.alias).filter(pk__in=ids).update(**ended)
    return sorted(ids)


def order_of(queue):
    return Order.objects.using(queue.alias).get()


def page_of(visitor, order, **query):
    return visitor.client.get(reverse("admin:jobqueue_order_change", args=[order.pk]), query)


def test_an_order_says_in_words_who_did_what_and_why(queue, operator, dead):
    operator.do("retry", *dead[:2], why="provider is back", per_minute="60")
    listed = operator.client.get(reverse("admin:jobqueue_order_changelist"))
    page = page_of(operator, order_of(queue))
    for words in ("Retry 2 jobs", operator.user.username, "provider is back", "2 of 2", "done"):
        assert words in listed.content.decode()
        assert words in page.content.decode()
    for words in ("2 jobs that were selected in a list", "at most 60 a minute", "100 %"):
        assert words in page.content.decode()
    for answer in (listed, page):
        assert stumbles(answer) == []
        assert Inline(answer.content.decode()).found == []


@pytest.mark.parametrize(
    ("verb", "data", "words"),
    [
        ("prioritise", {"priority": "2"}, "New priority"),
        ("move", {"queue": "mail"}, "New queue"),
        ("reschedule", {"amount": "2", "unit": "hours"}, "New time"),
    ],
)
def test_an_order_says_what_it_was_told(queue, operator, verb, data, words):
    put_all(queue, draft(), draft())
    operator.agree(operator.everything(verb, q="type:resize"), **data)
    page = page_of(operator, order_of(queue)).content.decode()
    assert words in page
    assert "all that matched status:queued type:resize" in page or "all that matched type:resize status:queued" in page


def test_it_says_what_became_of_the_jobs_since(queue, operator, dead):
    operator.do("retry", *dead)
    assert settle(queue, completed(take_one(queue), "null")) == ()
    assert settle(queue, failing(take_one(queue), Dead("again"))) == ()
    queue.operator.purge(dead[3:])
    order = order_of(queue)
    page = page_of(operator, order)
    assert [(name, count) for name, _label, count in page.context["jobs"].by_status] == [
        ("queued", "1"),
        ("completed", "1"),
        ("dead_letter", "1"),
        ("gone", "1"),
    ]
    assert [one.id for one in page.context["jobs"].shown] == dead
    again = page_of(operator, order, status="dead_letter").context["jobs"].shown
    assert [row(queue, one.id).status for one in again] == ["dead_letter"]
    assert [one.id for one in page_of(operator, order, status="gone").context["jobs"].shown] == dead[3:]
    assert reverse("admin:jobqueue_job_change", args=[dead[0]]) in page.content.decode()


def test_many_jobs_are_read_in_pages_and_counted_in_part(queue, operator, dead, monkeypatch):
    monkeypatch.setattr(jobs_of_orders, "SHOWN", 3)
    operator.do("retry", *dead)
    first = page_of(operator, order_of(queue)).context["jobs"]
    second = page_of(operator, order_of(queue), after=first.older).context["jobs"]
    assert [one.id for one in (*first.shown, *second.shown)] == dead
    assert (second.older, first.looked_at) == (None, "")
    monkeypatch.setattr(jobs_of_orders, "LOOKED_AT", 2)
    page = page_of(operator, order_of(queue), status="queued")
    assert [one.id for one in page.context["jobs"].shown] == dead[:2]
    assert "These are the first 2 of the changed jobs." in page.content.decode()


def test_a_jobs_history_and_timeline_find_its_order(queue, operator, dead):
    operator.do("retry", *dead[:2], why="provider is back")
    address = reverse("admin:jobqueue_order_change", args=[order_of(queue).pk])
    for job_id, is_there in ((dead[0], True), (dead[3], False)):
        for page in (operator.page(job_id), operator.client.get(reverse("admin:jobqueue_job_history", args=[job_id]))):
            assert ("Retried: provider is back" in page.content.decode()) == is_there
            assert (address in page.content.decode()) == is_there


def test_recent_actions_name_an_order_once_and_lead_to_it(queue, operator, dead):
    operator.do("retry", *dead, why="provider is back")
    (entry,) = LogEntry.objects.all()
    assert entry.object_repr == "Retry 4 jobs"
    assert entry.get_admin_url() == reverse("admin:jobqueue_order_change", args=[order_of(queue).pk])
    assert "Retry 4 jobs" in operator.client.get("/admin/").content.decode()


def news(visitor, page):
    """The parts of an order's page that have changed since."""
    known = ",".join(part.digest for part in page.context["parts"])
    return visitor.client.get(f"{page.context['live']}&known={known}").json()["parts"]


def test_an_open_page_of_an_order_tells_of_a_job_that_ended(queue, operator, dead):
    operator.do("purge", *dead)
    order = order_of(queue)
    page = page_of(operator, order)
    queue.operator.cancel([order.job_id])
    assert "The job that carries this order out has ended." in news(operator, page)["order"]["html"]


def test_an_open_page_of_an_order_tells_what_becomes_of_its_jobs_after_it_is_done(queue, operator, dead):
    operator.do("retry", *dead)
    page = page_of(operator, order_of(queue))
    assert news(operator, page).keys() <= {"order"}, "how long ago it was confirmed"
    assert settle(queue, completed(take_one(queue), "null")) == ()
    assert "completed: 1" in news(operator, page)["jobs"]["html"]


def test_the_news_of_an_order_are_of_the_jobs_that_are_shown(queue, operator, dead):
    operator.do("retry", *dead)
    page = page_of(operator, order_of(queue), status="completed")
    assert settle(queue, completed(take_one(queue), "null")) == ()
    assert sum(job_id in news(operator, page)["jobs"]["html"] for job_id in dead) == 1


def test_an_order_at_a_pace_leads_to_its_page_and_others_back(queue, operator, dead):
    asked = operator.act("retry", dead[0])
    assert operator.agree(asked).redirect_chain[-1][0] == reverse("admin:jobqueue_job_changelist")
    asked = operator.act("retry", dead[1])
    paced = operator.agree(asked, per_minute="60").redirect_chain[-1][0]
    assert paced == reverse("admin:jobqueue_order_change", args=[Order.objects.using(queue.alias).latest("pk").pk])


def test_an_order_at_a_pace_says_when_its_last_job_is_due(queue, operator, dead):
    operator.do("retry", *dead[:3], per_minute="1")
    facts = dict(page_of(operator, order_of(queue)).context["facts"])
    assert "in 1 minute" in facts["Last job due"].replace("\xa0", " ")
    Order.objects.using(queue.alias).update(done=2**31 - 1, left_alone=2**31 - 1)
    assert "Last job due" not in dict(page_of(operator, order_of(queue)).context["facts"])


def test_an_order_without_a_pace_says_no_such_thing(queue, operator, dead):
    operator.do("retry", *dead[:2])
    assert "Last job due" not in dict(page_of(operator, order_of(queue)).context["facts"])


def test_the_message_after_an_order_links_to_its_page(queue, operator, dead):
    answer = operator.do("retry", dead[0])
    page = reverse("admin:jobqueue_order_change", args=[order_of(queue).pk])
    assert f'1 job is queued again. <a href="{page}">Show the order</a>' in answer.content.decode()


def test_older_orders_are_a_page_further(queue, operator, dead, monkeypatch):
    monkeypatch.setattr(pages, "SHOWN", 2)
    for job_id in dead[:3]:
        operator.do("retry", job_id)
    first = operator.client.get(reverse("admin:jobqueue_order_changelist"))
    second = operator.client.get(reverse("admin:jobqueue_order_changelist"), {"below": first.context["older"]})
    assert [len(one.context["orders"]) for one in (first, second)] == [2, 1]
    assert second.context["older"] == ""


def test_a_question_is_no_order_yet(queue, operator, dead):
    operator.act("retry", *dead)
    order = order_of(queue)
    assert operator.client.get(reverse("admin:jobqueue_order_changelist")).context["orders"] == []
    assert page_of(operator, order).status_code == 302
    assert operator.client.post(reverse("admin:jobqueue_order_stop", args=[order.pk])).status_code == 302
    assert order_of(queue).state == "asked"


@pytest.mark.parametrize("order_id", ["nothing", "\0", "_00", "ä" * 300, "' OR 1=1 --"])
def test_an_unknown_order_leads_to_the_list(operator, order_id):
    for page in ("change", "stop"):
        answer = operator.client.get(reverse(f"admin:jobqueue_order_{page}", args=[order_id]))
        assert answer.headers["Location"] == reverse("admin:jobqueue_order_changelist")


@pytest.mark.parametrize("query", [{"after": "x"}, {"after": "9" * 30}, {"status": "\0"}, {"status": "none"}])
def test_a_query_in_nonsense_shows_all(queue, operator, dead, query):
    operator.do("retry", *dead)
    assert len(page_of(operator, order_of(queue), **query).context["jobs"].shown) == 4


@ON_SQLITE
@pytest.mark.parametrize(
    "forged",
    [
        {"verb": "explode"},
        {"instruction": {}},
        {"instruction": [1]},
        {"wanted": {"nonsense": 1}},
        {"wanted": 7},
        {"account": {"reasons": 3}},
        {"account": []},
        {"account": {"reasons": {"x": 5}}},
        {"account": {"reasons": {"x": [1, 5]}}},
        {"back": "javascript:alert(1)"},
        {"total": 2**31 - 1, "began_at": datetime(1, 1, 3, tzinfo=UTC), "state": "running"},
        {"state": "resting"},
    ],
)
def test_an_order_that_a_newer_release_wrote_is_shown_as_far_as_it_is_understood(queue, operator, dead, forged):
    operator.agree(operator.everything("retry", q="status:dead_letter"))
    Order.objects.using(queue.alias).update(**forged)
    job_id = OrderedJob.objects.using(queue.alias).first().job_id
    page = page_of(operator, order_of(queue))
    assert page.status_code == 200
    assert "javascript:" not in page.content.decode()
    assert operator.client.get(reverse("admin:jobqueue_order_changelist")).status_code == 200
    assert operator.page(job_id).status_code == 200


@pytest.mark.parametrize("order_id", ["a\nb", "a/b", "_00", "../x", " "])
def test_an_order_with_any_id_can_be_looked_at_and_stopped(queue, operator, dead, order_id):
    operator.agree(operator.everything("retry", q="status:dead_letter"))
    Order.objects.using(queue.alias).update(id=order_id, state="running")
    listed = operator.client.get(reverse("admin:jobqueue_order_changelist"))
    page = operator.client.get(listed.context["orders"][0].address)
    assert page.status_code == 200
    answer = operator.client.post(page.context["stop_address"], follow=True)
    assert told(answer) == ["The order is stopped."]
    assert order_of(queue).state == "stopped"


@pytest.mark.parametrize("column", ["instruction", "wanted", "account"])
def test_an_order_with_a_json_null_can_be_stopped(queue, operator, dead, column):
    operator.do("purge", *dead)
    Order.objects.using(queue.alias).update(**{column: Value(None, JSONField())})
    address = reverse("admin:jobqueue_order_stop", args=[order_of(queue).pk])
    assert told(operator.client.post(address, follow=True)) == ["The order is stopped."]
    assert (order_of(queue).state, getattr(order_of(queue), column)) == ("stopped", None)


def test_an_order_whose_request_was_killed_says_so(queue, operator, dead):
    operator.do("retry", *dead)
    cut = {"state": "waiting", "done": 0}
    Order.objects.using(queue.alias).update(**cut)
    words = "The request that should carry this order out has ended early."
    assert words not in page_of(operator, order_of(queue)).content.decode()
    Order.objects.using(queue.alias).update(given_at=SYSTEM.now() - timedelta(minutes=2))
    assert words in page_of(operator, order_of(queue)).content.decode()


BAD_QUESTIONS = (
    {"account": []},
    {"account": {"statuses": 5, "at": 0, "found": {}, "digest": ""}},
    {"account": {"statuses": ["none"], "at": 0, "found": {}, "digest": ""}},
    {"account": {"statuses": ["queued"], "at": -5, "found": {}, "digest": ""}},
    {"account": {"statuses": ["queued"], "at": 1, "found": {"queued": "x"}, "digest": ""}},
    {"account": {"statuses": ["queued"], "at": "0", "found": {}, "digest": 7}},
    {"account": {"statuses": [], "at": 0, "found": {}, "left": 3, "digest": ""}},
    {"wanted": 7},
    {"wanted": {"ids": 7}},
    {"total": -1},
)


@ON_SQLITE
@pytest.mark.parametrize("is_counted", [True, False])
@pytest.mark.parametrize("forged", BAD_QUESTIONS)
def test_a_question_that_another_program_wrote_cannot_be_answered(queue, operator, dead, forged, is_counted):
    asked = operator.act("retry", *dead)
    uncounted = {} if is_counted else {"counted_at": None}
    Order.objects.using(queue.alias).update(**forged, **uncounted)
    for answer in (
        operator.client.get(asked.context["address"], follow=True),
        operator.client.post(asked.context["address"], follow=True),
    ):
        assert told(answer) == ["This question can no longer be answered. Choose the jobs again."]
    assert {row(queue, one).status for one in dead} == {"dead_letter"}


@pytest.mark.parametrize("back", ["javascript:alert(1)", "//evil.example/", "https://evil.example/", "/a\r\nX: y", ""])
def test_a_question_leads_back_to_nowhere_else(queue, operator, dead, back):
    asked = operator.act("retry", *dead)
    Order.objects.using(queue.alias).update(back=back)
    page = operator.client.get(asked.context["address"])
    assert page.context["back"] == reverse("admin:jobqueue_job_changelist")
    answer = operator.client.post(asked.context["address"])
    assert answer.headers["Location"] == reverse("admin:jobqueue_job_changelist")
