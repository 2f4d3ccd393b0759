"""Tests of new jobs from the admin: forms made of schemas, copies with edits, and who may."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Literal

import pytest
from django.contrib.admin.models import LogEntry
from django.urls import reverse
from pydantic import BaseModel, Field, SecretStr

from jobqueue import job
from jobqueue.handlers.registry import registry
from jobqueue.models import Job
from jobqueue.testing.contract.harness import put
from tests.admin.conftest import ALL, row, told
from tests.admin.outline import stumbles
from tests.admin.test_pages import Inline

#: Forms do not depend on the database.
SQLITE_ALONE = True

ENQUEUE = "/admin/jobqueue/job/_enqueue/"
RIGHTS = ("view_job", "enqueue_job")


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Address(BaseModel):
    street: str


class Order(BaseModel):
    number: int = Field(ge=1, description="As printed on the receipt.")
    note: str
    weight: float = 1.5
    gift: bool = False
    colour: Colour = Colour.RED
    size: Literal["s", "m"] = "m"
    due: datetime | None = None
    to: Address | None = None
    tags: list[str] = []
    card_token: str = ""


class Login(BaseModel):
    user: str
    password: SecretStr


@pytest.fixture
def kinds(monkeypatch):
    """Types with payloads of every form."""
    monkeypatch.setattr(registry, "_types", {})

    @job(queue="orders", priority=7)
    def ship(payload: Order) -> None:
        return None

    @job
    def anything(payload: dict[str, Any]) -> None:
        return None

    @job(editable=False)
    def fixed(name: str) -> None:
        return None

    @job
    def bare() -> None:
        return None


@pytest.fixture
def clerk(queue, sign_in, kinds):
    """Someone who may enqueue jobs."""
    return sign_in(*RIGHTS)


def fields(form):
    """By property, the name of its field."""
    return {one.place: one.name for one in form.parts}


def filled(visitor, address, **given):
    """What a browser would send of a form, with some properties changed."""
    form = visitor.client.get(address).context["form"]
    names = fields(form)
    data = {name: "" if (value := form[name].value()) is None else value for name in form.fields}
    return {**data, **{names.get(place, place): value for place, value in given.items()}}


def submit(visitor, address, **given):
    return visitor.client.post(address, filled(visitor, address, **given), follow=True)


def jobs(queue):
    return list(Job.objects.using(queue.alias).order_by("pk"))


def test_types_are_offered_whose_payloads_people_may_write(clerk):
    page = clerk.client.get(ENQUEUE)
    assert page.context["types"] == ["anything", "bare", "ship"]
    assert b"?type=ship" in page.content


def test_a_job_is_enqueued_from_a_form_of_its_properties(queue, clerk):
    address = f"{ENQUEUE}?type=ship"
    page = clerk.client.get(address)
    assert list(fields(page.context["form"])) == list(Order.model_fields)
    assert "As printed on the receipt." in page.content.decode()
    answer = submit(
        clerk,
        address,
        number="7",
        note=" for Ada\r\n",
        gift="true",
        colour='"blue"',
        tags='["a"]',
        delay="60",
        why="lost",
    )
    assert told(answer) == ["The job is enqueued."]
    (made,) = jobs(queue)
    assert made.payload == {
        "number": 7,
        "note": " for Ada\n",
        "weight": 1.5,
        "gift": True,
        "colour": "blue",
        "size": "m",
        "due": None,
        "to": None,
        "tags": ["a"],
        "card_token": "",
    }
    assert (made.type, made.queue, made.priority, made.tenant) == ("ship", "orders", 7, None)
    assert made.scheduled_at - made.created_at == timedelta(seconds=60)
    assert answer.redirect_chain[-1][0] == reverse("admin:jobqueue_job_change", args=[made.pk])
    entry = LogEntry.objects.get()
    assert (entry.object_id, entry.change_message) == (made.pk, "Enqueued: lost")


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({"number": "0", "note": "x"}, "number"),
        ({"number": "", "note": "x"}, "number"),
        ({"number": "1e3", "note": "x"}, "number"),
        ({"number": "9" * 5_000, "note": "x"}, "number"),
        ({"number": "7", "note": "x", "colour": '"green"'}, "colour"),
        ({"number": "7", "note": "x", "due": '"soon"'}, "due"),
        ({"number": "7", "note": "x", "to": "{"}, "to"),
        ({"number": "7", "note": "x", "to": '{"street": 7}'}, "to"),
        ({"number": "7", "note": "x", "tags": "[" * 500}, "tags"),
        ({"number": "7", "note": "x", "card_token": "[redacted]"}, "__all__"),
        ({"number": "7", "note": "x", "queue": "no queue"}, "queue"),
        ({"number": "7", "note": "x", "priority": "11"}, "priority"),
        ({"number": "7", "note": "x", "tenant": "a\x07b"}, "tenant"),
        ({"number": "7", "note": "x", "delay": "9" * 20}, "delay"),
        ({"number": "7", "note": "a\0b"}, "note"),
    ],
)
def test_a_mistake_is_told_beside_its_field_and_changes_nothing(queue, clerk, given, wrong):
    page = submit(clerk, f"{ENQUEUE}?type=ship", **given)
    form = page.context["form"]
    assert {*form.errors} == {fields(form).get(wrong, wrong)}
    assert jobs(queue) == []
    assert not LogEntry.objects.exists()
    assert Inline(page.content.decode()).found == []
    assert stumbles(page) == []


@pytest.mark.parametrize(("name", "payload"), [("anything", {"a": [1, None]}), ("bare", {})])
def test_a_payload_without_properties_is_one_field_of_json(queue, clerk, name, payload):
    submit(clerk, f"{ENQUEUE}?type={name}", payload=json.dumps(payload))
    assert [(one.type, one.payload) for one in jobs(queue)] == [(name, payload)]


# Run again


def again(job_id, model="job"):
    return reverse(f"admin:jobqueue_{model}_again", args=[job_id])


@pytest.mark.parametrize("status", ["queued", "completed", "failed", "dead_letter"])
def test_a_job_is_run_again_as_a_new_one_with_its_hidden_values(queue, clerk, job_in, status):
    payload = {"number": 7, "note": "x", "card_token": "tok_4242"}
    job_id = put(queue, "ship", queue="other", priority=2, tenant="acme", payload=json.dumps(payload))
    Job.objects.using(queue.alias).filter(pk=job_id).update(status=status, unique_key="once")
    assert again(job_id) in clerk.page(job_id).content.decode()
    before = row(queue, job_id)
    page = clerk.client.get(again(job_id))
    assert "tok_4242" not in page.content.decode()
    answer = submit(clerk, again(job_id), note="y")
    assert told(answer) == ["The job is enqueued."]
    old, made = jobs(queue)
    assert old == before
    assert (made.payload["number"], made.payload["note"], made.payload["card_token"]) == (7, "y", "tok_4242")
    assert (made.status, made.queue, made.priority, made.tenant) == ("queued", "other", 2, "acme")
    assert (made.unique_key, made.idempotency_key, made.attempts) == (None, None, 0)
    assert LogEntry.objects.get().change_message == f"Enqueued as a copy of {job_id}."


@pytest.mark.parametrize(
    ("payload", "kinds_of_fields"),
    [
        ({"number": "seven", "note": "x"}, ["json", "string"]),
        ({"number": 7, "note": None}, ["integer", "json"]),
        ({"number": True, "note": ["x"]}, ["json", "json"]),
        ([1, 2], None),
        ("text", None),
    ],
)
def test_a_payload_that_does_not_fit_is_shown_as_it_is(queue, clerk, payload, kinds_of_fields):
    job_id = put(queue, "ship", payload=json.dumps(payload))
    page = clerk.client.get(again(job_id))
    parts = page.context["form"].parts
    assert [one.kind for one in parts][:2] == (kinds_of_fields or ["json"])
    submit(clerk, again(job_id))
    assert len(jobs(queue)) == 1


def test_properties_that_the_schema_does_not_name_are_shown_too(queue, clerk):
    job_id = put(queue, "ship", payload='{"number": 7, "note": "x", "more": 1}')
    assert '"more": 1' in clerk.client.get(again(job_id)).context["form"]["payload"].value()
    assert told(submit(clerk, again(job_id))) == ["The job is enqueued."]


@pytest.mark.parametrize("name", ["fixed", "unknown"])
def test_jobs_of_some_types_are_not_copied(queue, clerk, name):
    job_id = put(queue, name, payload='{"name": "x"}')
    assert again(job_id) not in clerk.page(job_id).content.decode()
    for answer in (clerk.client.get(again(job_id), follow=True), clerk.client.post(again(job_id), {}, follow=True)):
        assert name in told(answer)[0]
    for method in (clerk.client.get, clerk.client.post):
        assert name in told(method(f"{ENQUEUE}?type={name}", follow=True))[0]
    assert len(jobs(queue)) == 1


@pytest.mark.parametrize("payload", ["[" * 300 + "]" * 300, '{"number": ' + "9" * 5_000 + "}"])
def test_a_payload_that_cannot_be_read_is_not_copied(queue, clerk, payload):
    try:
        job_id = put(queue, "ship", payload=payload)
    except Exception:
        pytest.skip("the database takes no such JSON")
    answer = clerk.client.get(again(job_id), follow=True)
    assert "can't read the payload" in told(answer)[0]


@pytest.mark.parametrize("job_id", ["nothing", "\0", "ä" * 300])
def test_a_job_that_is_gone_is_not_copied(clerk, job_id):
    assert told(clerk.client.get(again(job_id), follow=True)) == ["This job is gone."]


def test_a_secret_of_a_model_stays_hidden(queue, clerk, monkeypatch):
    @job
    def sign_on(payload: Login) -> None:
        return None

    page = submit(clerk, f"{ENQUEUE}?type=sign_on", user="ada", password="hunter2")
    # What a masked secret would be stored as is refused by the payload itself.
    assert page.status_code == 200
    assert jobs(queue) == []


# Who may


@pytest.mark.parametrize(
    "codenames", [(), ("view_job",), ("enqueue_job",), tuple(one for one in ALL if one != "enqueue_job")]
)
def test_jobs_are_enqueued_by_those_alone_who_may(queue, sign_in, kinds, codenames):
    visitor, job_id = sign_in(*codenames), put(queue, "bare", payload="{}")
    for address in (ENQUEUE, f"{ENQUEUE}?type=bare", again(job_id), again(job_id, "deadletter")):
        assert visitor.client.get(address).status_code == 403
        assert visitor.client.post(address, {"payload": "{}", "queue": "default", "priority": "5"}).status_code == 403
    if "view_job" in codenames:
        assert ENQUEUE.encode() not in visitor.list().content
        assert again(job_id).encode() not in visitor.page(job_id).content
    assert len(jobs(queue)) == 1


def test_the_list_leads_to_the_form_of_those_who_may(clerk):
    assert ENQUEUE.encode() in clerk.list().content
    assert clerk.client.put(ENQUEUE).status_code == 405
