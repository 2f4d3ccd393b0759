"""Tests of saved searches: each user has their own, at the list that they are of."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse

from jobqueue.admin.lists import saved_searches
from jobqueue.models import SavedSearch
from jobqueue.testing.contract.harness import put
from tests.admin.conftest import list_address, shown, told
from tests.conftest import ON_SQLITE

HOSTILE = ["", "   ", "x" * 101, "\0", "\ud800", "x" * 3_000]


@pytest.fixture(autouse=True)
def _none_left(queue):
    yield
    SavedSearch.objects.using(queue.alias).all().delete()


def post(visitor, model="job", **data):
    return visitor.client.post(reverse(f"admin:jobqueue_{model}_searches"), data, follow=True)


def saved(visitor, model="job"):
    return [(one.name, one.query) for one in visitor.list(model).context["cl"].saved]


def test_a_search_is_saved_found_and_deleted(queue, operator):
    mine = put(queue, "rare", tenant="acme")
    put(queue, tenant="acme")
    page = operator.list(q="tenant:acme", type="rare", p="1")
    query = page.context["cl"].as_saved
    answer = post(operator, name="  the  rare ones ", query=query)
    assert told(answer) == ["The search “the rare ones” is saved."]
    assert answer.redirect_chain[-1][0] == f"{list_address('job')}?q=tenant%3Aacme&type=rare"
    assert saved(operator) == [("the rare ones", "q=tenant%3Aacme&type=rare")]
    assert saved(operator, "deadletter") == []
    (link,) = re.findall(r'<a href="([^"]*)">the rare ones</a>', operator.list().content.decode())
    assert shown(operator.client.get(list_address("job") + link.replace("&amp;", "&"))) == [mine]
    post(operator, name="the rare ones", query="q=other")
    assert saved(operator) == [("the rare ones", "q=other")]
    number = SavedSearch.objects.using(queue.alias).get().pk
    assert told(post(operator, delete=number, query=query)) == ["The saved search is deleted."]
    assert saved(operator) == []


def test_the_list_of_dead_letters_has_its_own(queue, operator):
    answer = post(operator, "deadletter", name="fires", query="q=error%3Afire")
    assert answer.redirect_chain[-1][0] == f"{list_address('deadletter')}?q=error%3Afire"
    assert (saved(operator), saved(operator, "deadletter")) == ([], [("fires", "q=error%3Afire")])


def test_nobody_sees_or_deletes_those_of_another(queue, operator, sign_in):
    other, stranger = sign_in("view_job"), sign_in()
    post(operator, name="mine", query="q=a")
    post(other, name="mine", query="q=b")
    assert (saved(operator), saved(other)) == ([("mine", "q=a")], [("mine", "q=b")])
    number = SavedSearch.objects.using(queue.alias).get(query="q=a").pk
    assert told(post(other, delete=number)) == []
    assert post(stranger, name="x", query="q=a").status_code == 403
    assert post(stranger, delete=number).status_code == 403
    assert saved(operator) == [("mine", "q=a")]


@ON_SQLITE
@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_that_is_none_is_refused_in_words(queue, operator, name):
    answer = post(operator, name=name.encode("utf-8", "replace").decode() if "\ud800" in name else name, query="q=a")
    assert answer.status_code == 200
    assert len(told(answer)) == 1
    if "\ud800" not in name:
        assert saved(operator) == []


@pytest.mark.parametrize("query", ["q=statsu%3Ax", "q=payload.password%3Ax", "payload__contains=x", "\0", "x" * 3_000])
def test_only_what_a_list_understands_is_kept(queue, operator, query):
    assert post(operator, name="x", query=query).status_code == 200
    assert [kept for _name, kept in saved(operator) if kept] == []


@ON_SQLITE
@pytest.mark.parametrize("number", ["", "x", "-1", "9" * 30, "²"])
def test_what_is_no_search_is_not_deleted(queue, operator, number):
    post(operator, name="mine", query="q=a")
    assert post(operator, delete=number).status_code == 200
    assert saved(operator) == [("mine", "q=a")]


def test_a_user_saves_so_many_and_no_more(queue, operator, monkeypatch):
    monkeypatch.setattr(saved_searches, "MOST", 2)
    for name in "abc":
        answer = post(operator, name=name, query=f"q={name}")
    assert told(answer) == ["You have saved 2 searches. Delete one of them first."]
    assert post(operator, name="b", query="q=z").status_code == 200
    assert saved(operator) == [("a", "q=a"), ("b", "q=z")]


def test_its_address_leads_to_the_list(queue, operator):
    answer = operator.client.get(reverse("admin:jobqueue_job_searches"), follow=True)
    assert answer.redirect_chain == [(list_address("job"), 302)]
