"""Tests of a job's origin: request and user, from the middleware or from code, and in follow-up jobs."""

from __future__ import annotations

import json
from uuid import UUID

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.contrib.auth import get_user_model
from django.db import connections
from django.http import HttpRequest, HttpResponse
from django.test import AsyncClient, Client
from django.urls import path, reverse

import jobqueue
from jobqueue import JobContext, job
from jobqueue.handlers.ambient import capture, restore
from jobqueue.handlers.origin import found
from jobqueue.handlers.registry import registry
from jobqueue.testing.contract.harness import take
from tests.app.jobs import send_welcome

OURS = "jobqueue.middleware.job_origin"


def unseen(_request: HttpRequest) -> HttpResponse:
    """Enqueue without a look at the user."""
    return HttpResponse(send_welcome.enqueue(7).id)


def seen(request: HttpRequest) -> HttpResponse:
    """Enqueue for a user who has been looked at."""
    known = str(request.user.is_authenticated)
    return HttpResponse(send_welcome.enqueue(7).id, headers={"X-Known": known})


async def seen_async(request: HttpRequest) -> HttpResponse:
    """Enqueue from a coroutine."""
    await request.auser()
    return HttpResponse((await send_welcome.aenqueue(7)).id)


def marked(get_response):
    """Leave an id as another middleware does."""

    def answer(request):
        request.request_id = UUID(int=7)
        return get_response(request)

    return answer


urlpatterns = [path("unseen", unseen), path("seen", seen), path("seen_async", seen_async)]


@pytest.fixture(params=["first", "last"])
def site(request, queue, settings):
    """A site with the middleware, before or behind all others."""
    settings.ROOT_URLCONF = __name__
    others = list(settings.MIDDLEWARE)
    settings.MIDDLEWARE = [OURS, *others] if request.param == "first" else [*others, OURS]


@pytest.fixture
def user(queue):
    user = get_user_model().objects.create_user("ada")
    yield user
    user.delete()


def stored(answer):
    return jobqueue.get(answer.content.decode()).context


def client_of(user):
    client = Client()
    client.force_login(user)
    return client


def test_a_job_says_which_request_and_which_user_it_comes_from(site, user):
    answer = client_of(user).get("/seen", headers={"X-Request-ID": "req-1"})
    assert stored(answer) == {"request_id": "req-1", "user": str(user.pk)}


def test_a_user_nobody_has_looked_at_is_not_looked_up(site, user):
    answer = client_of(user).get("/unseen", headers={"X-Request-ID": "req-1"})
    assert stored(answer) == {"request_id": "req-1"}
    assert "Cookie" not in answer.headers.get("Vary", "")


def test_without_a_user_or_an_id_nothing_is_said(site):
    assert stored(Client().get("/seen")) is None
    assert found() == {}


@pytest.mark.parametrize("kind", ["a sync view under asgi", "a coroutine"])
def test_it_is_the_same_in_async_servers(site, user, kind):
    client = AsyncClient()
    async_to_sync(sync_to_async(client.force_login))(user)
    there = "/seen_async" if kind == "a coroutine" else "/seen"
    answer = async_to_sync(client.get)(there, headers={"X-Request-ID": "req-1"})
    assert stored(answer) == {"request_id": "req-1", "user": str(user.pk)}
    assert found() == {}


def test_what_another_middleware_knows_goes_before_the_header(site, settings):
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, f"{__name__}.marked"]
    answer = Client().get("/unseen", headers={"X-Request-ID": "req-1"})
    assert stored(answer) == {"request_id": str(UUID(int=7))}


@pytest.mark.parametrize("sent", ["", " ", "x" * 201, "a b", "ü", "a\tb", "\x1b[2J"])
def test_an_id_that_is_none_is_left_out(site, sent):
    assert stored(Client().get("/unseen", headers={"X-Request-ID": sent})) is None


def test_the_longest_id_is_kept(site):
    assert stored(Client().get("/unseen", headers={"X-Request-ID": "x" * 200})) == {"request_id": "x" * 200}


# In code


def test_code_may_say_it_and_what_is_left_out_stays(user):
    with jobqueue.origin(user=user, request_id="message-1"):
        assert json.loads(capture()) == {"user": str(user.pk), "request_id": "message-1"}
        with jobqueue.origin(request_id="message-2"):
            assert found() == {"user": str(user.pk), "request_id": "message-2"}
        with jobqueue.origin(user=8):
            assert found() == {"user": "8", "request_id": "message-1"}
    assert capture() is None


def test_drafts_and_bulks_and_what_waits_for_a_commit_say_it_too(queue, alias):
    def contexts():
        with connections[alias].cursor() as cursor:
            cursor.execute("SELECT DISTINCT CAST(context AS text) FROM job_queue")
            return [json.loads(row[0]) for row in cursor.fetchall()]

    with jobqueue.origin(request_id="req-1"):
        send_welcome.enqueue_many([{"user_id": 1}, {"user_id": 2}])
        drafted = send_welcome.draft(3)
        jobqueue.enqueue_on_commit(send_welcome, {"user_id": 4})
    jobqueue.enqueue_many([drafted])
    assert contexts() == [{"request_id": "req-1"}]


# In the handler


def test_a_handler_hears_it_and_hands_it_on(queue, monkeypatch):
    monkeypatch.setattr(registry, "_types", dict(registry._types))
    heard = []

    @job
    def hear(ctx: JobContext) -> None:
        heard.append((ctx.user, ctx.request_id, capture()))

    with jobqueue.origin(user=8, request_id="req-1"):
        hear.enqueue()
    (claim,) = take(queue, 1, types=frozenset({"hear"}))
    with restore(claim.context):
        registry.get("hear").call(claim)
    ((user, request_id, handed_on),) = heard
    assert (user, request_id, json.loads(handed_on)) == ("8", "req-1", {"user": "8", "request_id": "req-1"})


@pytest.mark.parametrize("context", [{"user": {"a": 1}, "request_id": ["x"]}, {"user": True, "request_id": "a\nb"}])
def test_what_a_foreign_program_wrote_there_is_no_origin(context):
    with restore(json.dumps(context)):
        assert found() == {}


def test_a_plain_number_of_a_foreign_program_is_a_user():
    with restore('{"user": 8}'):
        assert found() == {"user": "8"}


def test_the_admin_shows_it(queue, user, admin_page):
    with jobqueue.origin(user=user, request_id="req-1"):
        receipt = send_welcome.enqueue(7)
    text = admin_page(reverse("admin:jobqueue_job_change", args=[receipt.id]))
    assert "req-1" in text
    assert "request_id" in text


@pytest.fixture
def admin_page(queue):
    """A function that reads a page of the admin."""
    reader = get_user_model().objects.create_superuser("root")
    yield lambda address: client_of(reader).get(address).content.decode()
    reader.delete()
