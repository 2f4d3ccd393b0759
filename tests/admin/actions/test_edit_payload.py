"""Tests of the retry with another payload: permissions, form, review, and what is kept and never sent."""

from __future__ import annotations

import json

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse

from jobqueue.admin.actions import edit_payload
from jobqueue.handlers.registry import registry
from jobqueue.models import Job
from jobqueue.testing.contract.harness import put
from tests.admin.actions.test_question import Fields
from tests.admin.conftest import ALL, row, told
from tests.admin.test_pages import Inline
from tests.app import edited

#: Forms do not depend on the database.
SQLITE_ALONE = True

SECRET = "hunter2-and-more"
PAYLOAD = {"name": "Ada", "password": SECRET, "limits": [{"a": 12345678901234567890}]}
SHOWN = json.dumps({**PAYLOAD, "password": "[redacted]"}, indent=2)


@pytest.fixture(autouse=True)
def _handlers(monkeypatch):
    monkeypatch.setattr(registry, "_types", dict(registry._types))
    edited.register()


@pytest.fixture
def dead(queue):
    """A function that makes a dead letter with a payload."""

    def make(kind="charge", payload=PAYLOAD, status="dead_letter", **values):
        text = payload if isinstance(payload, str) else json.dumps(payload)
        job_id = put(queue, kind, payload=text, **values)
        Job.objects.using(queue.alias).filter(pk=job_id).update(status=status)
        return job_id

    return make


def address(job_id, model="job"):
    return reverse(f"admin:jobqueue_{model}_edit", args=[job_id])


def open_(visitor, job_id, model="job"):
    return visitor.client.get(address(job_id, model), follow=True)


def send(visitor, job_id, payload, model="job", **data):
    text = payload if isinstance(payload, str) else json.dumps(payload)
    seen = visitor.client.get(address(job_id, model)).context["form"].initial["seen"]
    return visitor.client.post(address(job_id, model), {"payload": text, "seen": seen, **data}, follow=True)


def agree(visitor, review, **data):
    given = {**dict(review.context["kept"]), "confirmed": "yes", **data}
    return visitor.client.post(review.context["address"], given, follow=True)


def state(queue):
    return list(Job.objects.using(queue.alias).order_by("pk").values())


# From the box to the queue


@pytest.mark.parametrize(
    ("model", "status"), [("job", "dead_letter"), ("job", "failed"), ("deadletter", "dead_letter")]
)
def test_a_payload_is_edited_shown_and_only_then_stored(queue, operator, dead, status, model):
    job_id = dead(status=status)
    before = state(queue)
    form = open_(operator, job_id, model).context["form"]
    assert json.loads(form.initial["payload"]) == json.loads(SHOWN)
    assert form.initial["payload"].startswith('{\n  "')
    review = send(operator, job_id, {**json.loads(SHOWN), "name": "Eve"}, model, why="wrong name")
    assert [(one.place, one.was, one.will) for one in review.context["changes"]] == [("name", '"Ada"', '"Eve"')]
    assert "wrong name" in review.content.decode()
    assert state(queue) == before
    answer = agree(operator, review)
    assert told(answer) == ["The job is queued again with another payload."]
    job = row(queue, job_id)
    assert (job.status, job.payload) == ("queued", {**PAYLOAD, "name": "Eve"})
    assert job.context["first"] == {"payload": PAYLOAD, "payload_version": 1}
    entry = LogEntry.objects.get()
    assert (entry.object_id, entry.change_message) == (job_id, "Retried with another payload: wrong name")
    assert entry.content_type.model == "job"


def test_what_is_stored_is_what_the_model_makes_of_it_and_the_page_shows_that(queue, operator, dead):
    job_id = dead("renamed", {"user": "seven"})
    assert json.loads(open_(operator, job_id).context["form"].initial["payload"]) == {"user_id": "seven"}
    review = send(operator, job_id, {"user_id": "7"})
    assert [(one.was, one.will) for one in review.context["changes"]] == [('"seven"', "7")]
    agree(operator, review)
    job = row(queue, job_id)
    assert (job.payload, job.payload_version) == ({"user_id": 7}, 2)
    assert job.context["first"] == {"payload": {"user": "seven"}, "payload_version": 1}


def test_one_can_go_back_and_edit_again(queue, operator, dead):
    job_id = dead()
    before = state(queue)
    written = json.dumps({**json.loads(SHOWN), "name": "Eve"})
    review = send(operator, job_id, written, why="wrong name")
    again = operator.client.post(review.context["address"], {**dict(review.context["kept"]), "again": "yes"})
    assert again.context["form"]["payload"].value() == written
    assert again.context["form"]["why"].value() == "wrong name"
    assert state(queue) == before


def test_the_pages_would_do_under_a_strict_policy_and_with_a_screen_reader(queue, operator, dead):
    job_id = dead()
    pages = [open_(operator, job_id), send(operator, job_id, "{"), send(operator, job_id, {"name": "Eve"})]
    for page in pages:
        assert Inline(page.content.decode()).found == []
    for page in pages[:2]:
        found = Fields(page.content.decode())
        for name in ("payload", "why"):
            assert found.fields[name]["id"] in found.labels
            assert set(found.fields[name].get("aria-describedby", "").split()) <= found.ids
    assert found.fields["payload"]["aria-invalid"] == "true"


# Hidden values


def test_a_secret_is_never_sent_and_stays_what_it_was(queue, operator, dead):
    job_id = dead()
    pages = [open_(operator, job_id)]
    pages.append(send(operator, job_id, {**json.loads(SHOWN), "name": 7}))
    pages.append(send(operator, job_id, {**json.loads(SHOWN), "name": "Eve"}))
    pages.append(agree(operator, pages[-1]))
    assert [page.status_code for page in pages] == [200] * 4
    assert not any(SECRET in page.content.decode() for page in pages)
    assert row(queue, job_id).payload["password"] == SECRET
    assert SECRET not in str(list(LogEntry.objects.values()))


def test_a_secret_can_be_overwritten_and_is_then_as_hidden(queue, operator, dead):
    job_id = dead()
    review = send(operator, job_id, {**PAYLOAD, "password": "another-one!"})
    assert [(one.place, one.will) for one in review.context["changes"]] == [("password", "another hidden value")]
    table = review.content.decode().split("<table>")[1].split("</table>")[0]
    assert "another-one!" not in table
    page = agree(operator, review).content.decode()
    assert "another-one!" not in page
    assert row(queue, job_id).payload["password"] == "another-one!"


@pytest.mark.parametrize("moved", [{"name": "[redacted]"}, {"name": "x", "note": "[redacted]"}])
def test_a_hidden_value_is_not_to_be_moved_where_it_could_be_read(queue, operator, dead, moved):
    job_id = dead("anything_goes")
    before = state(queue)
    answer = send(operator, job_id, {**json.loads(SHOWN), **moved})
    assert "Write the value out." in answer.content.decode()
    assert state(queue) == before


def test_a_validator_that_quotes_a_hidden_value_does_not_betray_it(queue, operator, dead):
    job_id = dead(payload={**PAYLOAD, "password": SECRET + "!"})
    answer = send(operator, job_id, {"name": "Eve", "password": "[redacted]"})
    assert "odd length" in answer.content.decode()
    assert SECRET not in answer.content.decode()


# What will not do


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        ("", "This field is required."),
        ("{", "This is not valid JSON: see line 1, column 2."),
        ('{"name": "Ada",\n "limits": nothing}', "This is not valid JSON: see line 2, column 12."),
        ('{"name": NaN}', "NaN is not JSON."),
        ('{"name": Infinity}', "Infinity is not JSON."),
        ('{"name": ' + "9" * 5_000 + "}", "The JSON holds a number that is too long."),
        ("[" * 50_000 + "]" * 50_000, "too deeply"),
        ("[]", "payload: Input should be"),
        ("{}", "name: Field required"),
        ('{"name": 7, "password": 8}', "name: Input should be a valid string"),
        ('{"name": "\\u0000"}', "NUL"),
        ('{"name": "\\ud800"}', "surrogate"),
        ('{"name": "' + "x" * 300_000 + '"}', "MAX_PAYLOAD_BYTES"),
        (SHOWN, "The payload is unchanged."),
    ],
)
def test_a_payload_that_will_not_do_is_told_beside_the_box_and_changes_nothing(queue, operator, dead, payload, words):
    job_id = dead()
    before = state(queue)
    for data in ({}, {"confirmed": "yes"}):
        answer = send(operator, job_id, payload, **data)
        (errors,) = answer.context["form"].errors.values()
        assert any(words in one for one in errors)
        assert answer.context["form"]["payload"].value() == payload
    assert state(queue) == before
    assert LogEntry.objects.count() == 0


def test_each_wrong_field_is_told_with_its_place(operator, dead):
    answer = send(operator, dead(), {"password": 8, "limits": [{"a": []}]})
    errors = answer.context["form"].errors["payload"]
    assert [one.split(":")[0].split(".")[0] for one in errors][:2] == ["name", "password"]
    assert any(one.startswith("limits.0.a") for one in errors)


@pytest.mark.parametrize("why", ["a\nb", "x" * 501, "\x00"])
def test_a_reason_that_cannot_be_read_is_refused(queue, operator, dead, why):
    job_id = dead()
    answer = send(operator, job_id, {"name": "Eve"}, why=why, confirmed="yes")
    assert answer.context["form"].errors["why"]
    assert row(queue, job_id).status == "dead_letter"


def test_hostile_text_is_shown_as_text(operator, dead):
    hostile = {"name": "</textarea><script>alert(1)</script>", "limits": [{"<b>": "\"'><img src=x>"}]}
    job_id = dead("anything_goes", {"name": "<i>"})
    for page in (send(operator, job_id, hostile), send(operator, job_id, json.dumps(hostile)[:-1])):
        assert "<script>alert" not in page.content.decode()
        assert "<img" not in page.content.decode()
        assert "<b>" not in page.content.decode()


# What cannot be edited


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"status": "queued"}, "Only the payload of cancelled jobs and dead letters can be edited."),
        ({"status": "completed"}, "Only the payload of cancelled jobs and dead letters can be edited."),
        ({"kind": "chargee"}, "This release has no handler for the type chargee"),
        ({"kind": "settled_by_others"}, "Payloads of the type settled_by_others can't be edited."),
        ({"kind": "renamed", "payload": {"nobody": 1}}, "This release can't read the payload"),
        ({"kind": "renamed", "payload_version": 3}, "This release can't read the payload"),
        ({"kind": "anything_goes", "payload": {"x": "y" * 260_000}}, "too long to be edited here"),
    ],
)
def test_what_cannot_be_edited_says_why(queue, operator, dead, values, words):
    job_id = dead(**values)
    before = state(queue)
    for answer in (
        open_(operator, job_id),
        operator.client.post(address(job_id), {"payload": "{}", "confirmed": "yes"}, follow=True),
    ):
        assert answer.redirect_chain == [(reverse("admin:jobqueue_job_change", args=[job_id]), 302)]
        assert words in told(answer)[0]
    assert state(queue) == before


@pytest.mark.parametrize("alias", [pytest.param("default", marks=pytest.mark.sqlite)], indirect=True)
def test_a_payload_that_python_cannot_read_says_so(queue, operator, dead):
    job_id = dead("anything_goes", '{"n": ' + "9" * 5_000 + "}")
    assert "This release can't read the payload" in told(open_(operator, job_id))[0]


@pytest.mark.parametrize("job_id", ["nothing", "\0", "ä" * 300])
def test_an_unknown_job_leads_to_the_list(operator, job_id):
    answer = open_(operator, job_id)
    assert told(answer)[0].startswith("1 job was left alone: it is gone")


def test_a_job_that_has_changed_meanwhile_is_not_overwritten(queue, operator, dead):
    job_id = dead()
    review = send(operator, job_id, {**json.loads(SHOWN), "name": "Eve"})
    other = {**PAYLOAD, "password": "of-somebody-else"}
    queue.operator.retry_edited(job_id, json.dumps(other), 1)
    Job.objects.using(queue.alias).filter(pk=job_id).update(status="dead_letter")
    answer = agree(operator, review)
    assert "The job has changed since you opened this page" in answer.content.decode()
    assert (row(queue, job_id).status, row(queue, job_id).payload) == ("dead_letter", other)


def test_a_newer_job_with_its_unique_key_stands_in_the_way(queue, operator, dead):
    job_id = dead(unique_key="one at a time")
    put(queue, "charge", unique_key="one at a time")
    (message,) = told(agree(operator, send(operator, job_id, {"name": "Eve"})))
    assert "a newer job holds its unique key" in message
    assert row(queue, job_id).payload == PAYLOAD
    assert LogEntry.objects.count() == 0


# Who may


@pytest.mark.parametrize("permission", [*ALL[1:], None])
def test_it_takes_a_permission_of_its_own(queue, sign_in, dead, permission):
    visitor = sign_in("view_job", *([permission] if permission else []))
    job_id = dead()
    allowed = permission == "edit_job"
    seen = row(queue, job_id).updated_at.isoformat()
    data = {"payload": '{"name": "Eve"}', "seen": seen, "confirmed": "yes"}
    before = state(queue)
    assert visitor.client.get(address(job_id)).status_code == (200 if allowed else 403)
    assert bool(visitor.page(job_id).context["addresses"]["edit"]) == allowed
    assert state(queue) == before
    assert visitor.client.post(address(job_id), data).status_code == (302 if allowed else 403)
    assert (state(queue) != before) == allowed


def test_it_takes_the_view_and_the_pages_token(queue, sign_in, operator, dead):
    job_id = dead()
    data = {"payload": '{"name": "Eve"}', "seen": row(queue, job_id).updated_at.isoformat(), "confirmed": "yes"}
    blind = sign_in(*ALL[1:])
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(operator.user)
    assert [client.post(address(job_id), data).status_code for client in (blind.client, strict)] == [403, 403]
    assert blind.client.get(address(job_id)).status_code == 403
    assert row(queue, job_id).status == "dead_letter"


def test_looking_changes_nothing_and_other_methods_are_refused(queue, operator, dead):
    job_id = dead()
    before = state(queue)
    query = {"payload": '{"name": "Eve"}', "seen": before[0]["updated_at"].isoformat(), "confirmed": "yes"}
    assert operator.client.get(address(job_id), query).status_code == 200
    assert [getattr(operator.client, one)(address(job_id)).status_code for one in ("put", "delete", "patch")] == [
        405
    ] * 3
    assert state(queue) == before


@pytest.mark.parametrize(
    ("values", "offered"),
    [
        ({}, True),
        ({"status": "failed"}, True),
        ({"status": "queued"}, False),
        ({"status": "completed"}, False),
        ({"kind": "settled_by_others"}, False),
        ({"kind": "chargee"}, False),
    ],
)
def test_it_is_offered_where_it_can_be_done(operator, dead, values, offered):
    assert bool(operator.page(dead(**values)).context["addresses"]["edit"]) == offered


def test_a_long_list_of_changes_is_cut(operator, dead, monkeypatch):
    monkeypatch.setattr(edit_payload, "CHANGES_SHOWN", 2)
    page = send(operator, dead("anything_goes", {}), {"a": 1, "b": 2, "c": 3, "d": 4}).content.decode()
    assert "2 more changes are not shown." in page
