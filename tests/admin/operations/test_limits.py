"""Tests of limits in the admin: what is shown of them, and setting and unsetting them."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import urlencode

import pytest
from django.contrib.admin.models import LogEntry

from jobqueue.observe.metrics import WINDOWS, figures
from jobqueue.records import Limit, LimitKind, Scope
from jobqueue.testing.contract.harness import draft, put_all, request, take
from tests.admin.conftest import told
from tests.admin.outline import stumbles

FIRST = "/admin/jobqueue/queue/"


def at_once(number=1, name="mail", scope=Scope.QUEUE, key=""):
    return Limit(scope, name, LimitKind.CONCURRENCY, number, key=key)


def page(verb="limit", **query):
    return f"{FIRST}{verb}/?{urlencode({'scope': 'queue', 'name': 'mail', **query})}"


@pytest.fixture
def keeper(queue, sign_in):
    """Someone who may set limits."""
    return sign_in("view_job", "set_limit")


def table(answer, name="limits"):
    (found,) = [part.body for part in answer.context["parts"] if part.name == name]
    return found


def test_the_page_of_a_queue_shows_its_limits_with_what_is_in_use_and_who_set_them(queue, keeper, settings):
    settings.JOBQUEUE = settings.JOBQUEUE | {"QUEUES": {"other": {}}}
    queue.limits.set(at_once(2), "the provider is slow", "ann <b>")
    queue.limits.set(Limit(Scope.TYPE, "send_welcome", LimitKind.RATE, 1, 60.0))
    queue.limits.set(at_once(9, "elsewhere"))
    put_all(queue, *(draft("send_welcome", queue="mail") for _ in range(3)))
    assert len(take(queue, 3, types=frozenset({"send_welcome"}))) == 1
    answer = keeper.client.get(f"{FIRST}one/?queue=mail")
    assert stumbles(answer) == []
    shown = table(answer)
    assert "2 at once" in shown
    assert "the provider is slow" in shown
    assert "ann &lt;b&gt;" in shown
    assert "1 in 60 s" in shown
    assert "used up" in shown
    assert "elsewhere" not in shown
    assert "unlimit/" in shown
    everywhere = table(keeper.client.get(FIRST))
    assert "1 in 60 s" in everywhere


def test_readers_see_limits_and_no_buttons(queue, sign_in):
    queue.limits.set(at_once(2))
    put_all(queue, draft("send_welcome", queue="mail"))
    shown = table(sign_in("view_job").client.get(f"{FIRST}one/?queue=mail"))
    assert "2 at once" in shown
    assert "limit/" not in shown


def test_a_limit_is_set_changed_and_unset_with_reasons_in_the_log(queue, keeper):
    answer = keeper.client.get(page())
    assert stumbles(answer) == []
    for number in ("3", "1"):
        given = {"kind": "concurrency", "number": number, "why": f"to {number}"}
        answer = keeper.client.post(page(), given, follow=True)
        assert told(answer)
    (stored,) = queue.limits.stored()
    assert (stored.limit, stored.reason, stored.author) == (at_once(1), "to 1", keeper.user.get_username())
    put_all(queue, *(draft("send_welcome", queue="mail") for _ in range(3)))
    assert len(queue.cycle("me", (), request(types=frozenset({"send_welcome"}))).claims) == 1
    keeper.client.post(page("unlimit", kind="concurrency"), {"why": "well again"})
    assert queue.limits.stored() == []
    entries = LogEntry.objects.order_by("pk").values_list("object_repr", "change_message")
    assert [message for _name, message in entries] == [
        "Limit set to 3 at once: to 3",
        "Limit set to 1 at once: to 1",
        "Limit unset: well again",
    ]
    assert "Limit unset: well again" in keeper.client.get(FIRST).content.decode()
    answer = keeper.client.post(page("unlimit", kind="concurrency"), {}, follow=True)
    assert "has no such stored limit" in " ".join(told(answer))


@pytest.mark.parametrize(
    "given",
    [
        {"kind": "concurrency", "number": "0", "why": "x"},
        {"kind": "concurrency", "number": "1"},
        {"kind": "concurrency", "number": "1", "per": "60", "why": "x"},
        {"kind": "rate", "number": "1", "why": "x"},
        {"kind": "rate", "number": "1", "per": "0", "why": "x"},
        {"kind": "rate", "number": "1", "per": "nan", "why": "x"},
        {"kind": "concurrency", "number": "1", "key": "account", "why": "x"},
        {"kind": "of another kind", "number": "1", "why": "x"},
        {"kind": "concurrency", "number": "9" * 6_000, "why": "x"},
    ],
)
def test_a_wrong_limit_is_refused_and_nothing_is_stored(queue, keeper, given):
    answer = keeper.client.post(page(), given)
    assert answer.status_code == 200
    assert answer.context["form"].errors
    assert queue.limits.stored() == []


@pytest.mark.parametrize(
    "address",
    [
        page("unlimit", kind="rate", per="x"),
        page("unlimit", kind="rate", per="0"),
        page("unlimit", kind="concurrency", key="no key"),
        page("limit", scope="planet"),
    ],
)
def test_an_address_that_names_no_limit_is_a_bad_request(keeper, address):
    assert keeper.client.get(address).status_code == 400


def test_a_limit_of_a_queue_whose_name_no_queue_may_have_is_refused(queue, keeper):
    answer = keeper.client.post(page(name="no queue"), {"kind": "concurrency", "number": "1", "why": "x"}, follow=True)
    assert "no queue" in " ".join(told(answer))
    assert queue.limits.stored() == []


# What was shed


def test_shed_jobs_are_a_figure_over_time_with_a_chart(queue, keeper):
    now = queue.now()
    put_all(queue, draft("send_welcome", queue="mail"))
    assert "Jobs shed" not in keeper.client.get(f"{FIRST}one/?queue=mail").content.decode()
    for ago, shed in ((3, 2), (2, 5), (0, 1)):
        queue.gauges.add_shed("mail", shed)
        assert queue.metrics.sample(now - timedelta(minutes=ago))
    found = figures(WINDOWS["hour"], "mail")
    assert [one.shed for one in found.points[-4:]] == [0, 5, 0, 1]
    assert found.total.shed == 6
    assert "Jobs shed" in keeper.client.get(f"{FIRST}one/?queue=mail").content.decode()
