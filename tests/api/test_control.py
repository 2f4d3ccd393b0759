"""Tests of the operator's actions in code: amend, retry with a pace, retry with another payload."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from jobqueue import Concurrency, NotEditable, PayloadRefused, PayloadUnfit, UnknownJobType, control
from jobqueue.clock import SYSTEM
from jobqueue.errors import InvalidOption
from jobqueue.handlers.registry import registry
from jobqueue.models import Job
from jobqueue.records import Amendment, Filter, Refusal, Scope
from jobqueue.states import JobStatus
from jobqueue.testing.contract.harness import draft, put, put_all
from tests.app import edited

SECRET = "hunter2-and-more"
DEAD = Filter(statuses=frozenset({JobStatus.DEAD_LETTER}))


@pytest.fixture(autouse=True)
def _handlers(monkeypatch):
    monkeypatch.setattr(registry, "_types", dict(registry._types))
    edited.register()


@pytest.fixture
def dead(queue, alias):
    """A function that makes dead letters and returns their ids, in order."""

    def make(count=1, kind="charge", **values):
        ids = put_all(queue, *(draft(kind, **values) for _ in range(count)))
        Job.objects.using(alias).filter(pk__in=ids).update(status="dead_letter")
        return sorted(ids)

    return make


@pytest.fixture
def row(alias):
    return lambda job_id: Job.objects.using(alias).get(pk=job_id)


# Amending


def test_queued_jobs_are_amended_by_id_and_by_filter(queue, row):
    one, other, theirs = put(queue), put(queue), put(queue, tenant="acme")
    assert control.amend([one, "nosuch"], Amendment(queue="mail")).refused == (Refusal("nosuch", "does not exist"),)
    told = []
    handled = control.amend_matching(Filter(tenant="acme"), Amendment(priority=1), told=told.append)
    assert (handled.done, told) == ((theirs,), [1])
    assert [(row(job_id).queue, row(job_id).priority) for job_id in (one, other, theirs)] == [
        ("mail", 5),
        ("default", 5),
        ("default", 1),
    ]


def test_amending_by_filter_takes_what_waits_and_no_more_than_the_limit(queue, dead, row):
    dead()
    ids = sorted(put_all(queue, *(draft() for _ in range(3))))
    assert control.amend_matching(Filter(), Amendment(queue="mail"), 2).done == tuple(ids[:2])
    with pytest.raises(InvalidOption, match="dead_letter cannot be amended"):
        control.amend_matching(DEAD, Amendment(queue="mail"))


@pytest.mark.parametrize(
    "amendment",
    [
        Amendment(),
        Amendment(queue=""),
        Amendment(queue="no such queue"),
        Amendment(queue="x" * 101),
        Amendment(priority=0),
        Amendment(priority=11),
        Amendment(scheduled_at=datetime(2026, 1, 1)),  # noqa: DTZ001 - naive, with USE_TZ on
        Amendment(now=True, scheduled_at=SYSTEM.now()),
    ],
)
def test_what_no_job_can_have_changes_nothing(queue, row, amendment):
    job_id = put(queue)
    before = row(job_id).updated_at
    with pytest.raises(InvalidOption):
        control.amend([job_id], amendment)
    assert row(job_id).updated_at == before


@pytest.mark.parametrize("amendment", [Amendment(now=True), Amendment(queue="mail")])
def test_workers_are_woken_by_what_may_be_due_by_now(queue, monkeypatch, amendment):
    woken = []
    monkeypatch.setattr(type(queue), "wake", lambda self, age=0.0: woken.append(1))
    job_id = put(queue, delay=timedelta(days=1))
    control.amend(["nosuch"], amendment)
    assert woken == []
    control.amend([job_id], amendment)
    assert woken == [1]


# With a pace


def test_a_pace_goes_on_from_batch_to_batch(dead, alias, monkeypatch):
    monkeypatch.setattr(control, "BATCH", 2)
    ids = dead(5)
    began = SYSTEM.now()
    handled = control.retry_matching(DEAD, every=60)
    assert handled.done == tuple(ids)
    due = Job.objects.using(alias).in_bulk(ids)
    waits = [(due[job_id].scheduled_at - began).total_seconds() for job_id in ids]
    assert waits == pytest.approx([0, 60, 120, 180, 240], abs=20)
    assert waits == sorted(waits)
    # Never denser than was said, whatever time passes between two batches.
    assert min(after - before for before, after in pairwise(waits)) >= 60 - 1e-3


def test_retries_by_id_can_begin_later(dead, row):
    first, second = dead(2)
    began = SYSTEM.now()
    control.retry([second, first], every=timedelta(minutes=1), after=timedelta(hours=1))
    waits = [(row(job_id).scheduled_at - began).total_seconds() for job_id in (second, first)]
    assert waits == pytest.approx([3_600, 3_660], abs=20)


@pytest.mark.parametrize("every", [-1, "soon", float("nan"), 1e12])
def test_a_pace_that_is_none_is_refused(dead, row, every):
    (job_id,) = dead()
    with pytest.raises(InvalidOption, match="every"):
        control.retry([job_id], every=every)
    assert row(job_id).status == "dead_letter"


# With another payload


def test_a_payload_is_validated_stored_as_of_today_and_the_first_is_kept(dead, row):
    (job_id,) = dead(kind="renamed", payload='{"user": "seven"}')
    assert control.retry_edited(job_id, {"user_id": "7"}).done == (job_id,)
    found = row(job_id)
    assert (found.status, found.payload, found.payload_version) == ("queued", {"user_id": 7}, 2)
    assert found.context["first"] == {"payload": {"user": "seven"}, "payload_version": 1}


@pytest.mark.parametrize(
    ("payload", "complaint"),
    [
        ({}, "name: Field required"),
        ({"name": 7}, "name: Input should be a valid string"),
        ([], "payload: Input should be"),
        ({"name": "Ada", "password": SECRET + "!"}, "password: Value error"),
        ({"name": float("inf")}, "cannot be written as JSON"),
        ({"name": "\0"}, "NUL"),
        ({"name": {1, 2}}, "cannot be written as JSON"),
        ({"name": "x" * 300_000}, "MAX_PAYLOAD_BYTES"),
    ],
)
def test_a_payload_that_will_not_do_changes_nothing_and_quotes_no_secret(dead, row, payload, complaint):
    (job_id,) = dead()
    with pytest.raises(PayloadRefused, match=complaint) as caught:
        control.retry_edited(job_id, payload)
    assert SECRET not in str(caught.value)
    assert row(job_id).status == "dead_letter"
    assert row(job_id).context is None


def test_what_does_not_fit_says_where(dead):
    with pytest.raises(PayloadUnfit) as caught:
        control.retry_edited(*dead(), {"limits": [{"a": []}]})
    assert {place.split(".")[0] for place, _words in caught.value.complaints} == {"name", "limits"}


def test_a_type_that_does_not_want_it_is_not_edited(dead, row):
    (job_id,) = dead(kind="settled_by_others", payload='{"account": "a"}')
    with pytest.raises(NotEditable, match="settled_by_others"):
        control.retry_edited(job_id, {"account": "b"})
    assert (row(job_id).status, row(job_id).payload) == ("dead_letter", {"account": "a"})


def test_handlers_may_be_edited_unless_they_say_otherwise():
    assert registry.get("charge").editable
    assert not registry.get("settled_by_others").editable


def test_another_payload_has_the_keys_of_its_limits(dead, row, settings):
    settings.JOBQUEUE = {**settings.JOBQUEUE, "QUEUES": {"default": {"limits": [Concurrency(1, key="name")]}}}
    (job_id,) = dead()
    assert control.retry_edited(job_id, {"name": "Ada"}).done == (job_id,)
    assert row(job_id).concurrency_key == '{"name":"Ada"}'


def test_an_unknown_type_says_so(dead):
    with pytest.raises(UnknownJobType, match="chargee"):
        control.retry_edited(*dead(kind="chargee"), {})


def test_what_is_not_there_or_not_over_is_refused(queue, row):
    assert control.retry_edited("nosuch", {}).refused == (Refusal("nosuch", "does not exist"),)
    job_id = put(queue, "charge")
    (refusal,) = control.retry_edited(job_id, {"name": "Ada"}).refused
    assert "is queued" in refusal.reason
    assert row(job_id).payload == json.loads(draft().payload)


@pytest.mark.parametrize("reason", ["a\0b", "a\nb", "a\u202eb", "\ud800", "x" * 501])
def test_a_reason_that_no_page_would_take_pauses_nothing(queue, reason):
    with pytest.raises(InvalidOption, match="reason must"):
        control.pause(Scope.QUEUE, "mail", reason)
    assert queue.operator.pauses() == []
