"""Tests of what enqueueing stores: defaults, options, many jobs at once, duplicates, and any JSON."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from asgiref.sync import async_to_sync
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pydantic import ValidationError

import jobqueue
from jobqueue import IdempotencyMismatch, InvalidOption, JobNotFound, JobStatus, PayloadRefused, UnknownJobType
from jobqueue.clock import SYSTEM
from jobqueue.handlers.registry import registry
from jobqueue.models import Job
from jobqueue.records import Admission
from jobqueue.testing.contract.harness import put, take
from tests.app.jobs import Resize, anything, greet, keep, resize_image, send_welcome

NOON = datetime(2026, 1, 16, 12, 0, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")
FOREVER = timedelta(days=3_650)


def _count(queue):
    return Job.objects.using(queue.alias).count()


# The defaults of a type


def test_a_job_is_stored_with_the_defaults_of_its_type(queue):
    stored = jobqueue.get(resize_image.enqueue(Resize(image_id=7)).id)
    assert (stored.type, stored.status, stored.payload) == (
        "resize_image",
        JobStatus.QUEUED,
        {"image_id": 7, "width": 800},
    )
    assert (stored.queue, stored.priority, stored.max_retries) == ("images", 3, 5)
    assert stored.timeout == timedelta(seconds=30)
    assert (stored.payload_version, stored.idempotency_key, stored.unique_key, stored.tenant) == (1, None, None, None)


def test_a_job_without_any_options_has_the_canonical_defaults(queue):
    stored = jobqueue.get(send_welcome.enqueue(7).id)
    assert (stored.queue, stored.priority, stored.max_retries, stored.timeout) == ("default", 5, 3, None)
    assert (stored.attempts, stored.fence, stored.history) == (0, 0, ())


def test_a_job_is_due_at_once_unless_its_type_waits(queue):
    now, later = jobqueue.get(send_welcome.enqueue(7).id), jobqueue.get(greet.enqueue("Ada").id)
    assert now.scheduled_at == now.created_at
    assert later.scheduled_at == later.created_at + timedelta(seconds=5)
    assert abs(SYSTEM.now() - now.created_at) < timedelta(minutes=1)


@pytest.mark.parametrize(
    "enqueue",
    [
        pytest.param(lambda: resize_image.enqueue(Resize(image_id=7, width=1)), id="a model"),
        pytest.param(lambda: resize_image.enqueue(image_id=7, width=1), id="its fields"),
        pytest.param(lambda: resize_image.using(priority=1).enqueue(image_id=7, width=1), id="with options"),
        pytest.param(lambda: jobqueue.enqueue("resize_image", Resize(image_id=7, width=1)), id="a model by name"),
        pytest.param(lambda: jobqueue.enqueue("resize_image", {"image_id": 7, "width": 1}), id="a dict by name"),
        pytest.param(lambda: resize_image.enqueue_many([{"image_id": 7, "width": 1}])[0], id="one of many"),
        pytest.param(lambda: jobqueue.enqueue_many([resize_image.draft(image_id=7, width=1)])[0], id="a draft"),
        pytest.param(lambda: async_to_sync(resize_image.aenqueue)(image_id=7, width=1), id="async"),
        pytest.param(
            lambda: async_to_sync(jobqueue.aenqueue)("resize_image", {"image_id": 7, "width": 1}), id="async by name"
        ),
    ],
)
def test_every_way_to_enqueue_stores_the_same(queue, enqueue):
    receipt = enqueue()
    stored = jobqueue.get(receipt.id)
    assert (receipt.created, receipt.outcome) == (True, Admission.CREATED)
    assert (stored.type, stored.queue, stored.payload) == ("resize_image", "images", {"image_id": 7, "width": 1})
    assert _count(queue) == 1


def test_a_handler_without_parameters_needs_no_payload(queue, monkeypatch):
    monkeypatch.setattr(registry, "_types", dict(registry._types))

    @jobqueue.job
    def tidy_up() -> None: ...

    assert jobqueue.get(tidy_up.enqueue().id).payload == {}
    assert jobqueue.get(jobqueue.enqueue("tidy_up").id).payload == {}


def test_a_former_name_enqueues_under_the_present_one(queue):
    assert jobqueue.get(jobqueue.enqueue("greet", {"name": "Ada"}).id).type == "greet.v2"


def test_an_unknown_name_suggests_the_nearest_and_stores_nothing(queue):
    with pytest.raises(UnknownJobType, match="Did you mean 'resize_image'"):
        jobqueue.enqueue("resize_imge", {"image_id": 7})
    assert _count(queue) == 0


def test_an_unknown_id_is_told(queue):
    with pytest.raises(JobNotFound, match="no job 01J"):
        jobqueue.get("01J")


def test_ids_rise_in_the_order_of_enqueueing(queue):
    ids = [send_welcome.enqueue(number).id for number in range(20)]
    assert ids == sorted(ids)


# Options of one call


@pytest.mark.parametrize(
    ("option", "value", "stored"),
    [
        ("queue", "mail", "mail"),
        ("priority", 1, 1),
        ("max_retries", 7, 7),
        ("timeout", 1.5, timedelta(seconds=1.5)),
        ("timeout", timedelta(hours=2), timedelta(hours=2)),
        ("timeout", None, None),
        ("scheduled_at", NOON, NOON),
        ("scheduled_at", NOON.astimezone(BERLIN), NOON),
        ("expires_at", NOON, NOON),
        ("idempotency_key", "resize-7", "resize-7"),
        ("unique_key", "resize-7", "resize-7"),
        ("tenant", "acme", "acme"),
        ("workspace", "north", "north"),
    ],
)
def test_each_option_is_stored(queue, option, value, stored):
    by_handler = resize_image.using(**{option: value}).enqueue(image_id=7)
    assert getattr(jobqueue.get(by_handler.id), option) == stored
    queue.operator.purge([by_handler.id])
    by_name = jobqueue.enqueue("resize_image", {"image_id": 7}, **{option: value})
    assert getattr(jobqueue.get(by_name.id), option) == stored


@pytest.mark.parametrize("delay", [90, 90.0, timedelta(seconds=90)])
def test_a_delay_counts_from_now(queue, delay):
    stored = jobqueue.get(send_welcome.using(delay=delay).enqueue(7).id)
    assert stored.scheduled_at == stored.created_at + timedelta(seconds=90)


def test_a_delay_of_nothing_undoes_the_types(queue):
    stored = jobqueue.get(greet.using(delay=0).enqueue("Ada").id)
    assert stored.scheduled_at == stored.created_at


def test_a_moment_given_for_one_job_replaces_the_types_delay(queue):
    assert jobqueue.get(greet.using(scheduled_at=NOON).enqueue("Ada").id).scheduled_at == NOON


def test_options_add_up_and_the_last_word_counts(queue):
    bound = resize_image.using(priority=1, tenant="acme").using(priority=9)
    stored = jobqueue.get(bound.enqueue(image_id=7).id)
    assert (stored.priority, stored.tenant, stored.queue) == (9, "acme", "images")


def test_options_of_one_call_leave_the_handler_as_it_was(queue):
    resize_image.using(priority=1).enqueue(image_id=7)
    assert jobqueue.get(resize_image.enqueue(image_id=7).id).priority == 3


def test_an_option_of_many_holds_for_each(queue):
    receipts = send_welcome.using(queue="mail", tenant="acme").enqueue_many([{"user_id": 1}, {"user_id": 2}])
    assert {(jobqueue.get(one.id).queue, jobqueue.get(one.id).tenant) for one in receipts} == {("mail", "acme")}


# Many


def test_many_are_stored_in_their_order(queue):
    receipts = resize_image.enqueue_many([Resize(image_id=1), {"image_id": 2}, Resize(image_id=3)])
    assert [jobqueue.get(one.id).payload["image_id"] for one in receipts] == [1, 2, 3]
    assert all(one.created for one in receipts)


def test_many_of_a_plain_signature_come_as_dicts_of_its_parameters(queue):
    receipts = send_welcome.enqueue_many({"user_id": number} for number in range(3))
    assert [jobqueue.get(one.id).payload for one in receipts] == [
        {"user_id": number, "language": "en"} for number in range(3)
    ]


def test_none_are_stored_for_none(queue):
    assert send_welcome.enqueue_many([]) == jobqueue.enqueue_many([]) == []
    assert _count(queue) == 0


def test_drafts_of_any_types_go_together(queue):
    drafts = [send_welcome.draft(7), resize_image.using(idempotency_key="a").draft(image_id=7), greet.draft("Ada")]
    assert _count(queue) == 0
    receipts = jobqueue.enqueue_many(drafts)
    assert [jobqueue.get(one.id).type for one in receipts] == ["send_welcome", "resize_image", "greet.v2"]
    assert [one.id for one in receipts] == [one.id for one in drafts]


def test_one_draft_given_twice_makes_one_job_and_says_so(queue):
    draft = send_welcome.draft(7)
    assert [one.created for one in jobqueue.enqueue_many([draft, draft])] == [True, False]
    assert _count(queue) == 1


def test_a_bad_one_among_many_stores_none(queue):
    with pytest.raises(ValidationError):
        send_welcome.enqueue_many([{"user_id": 1}, {"user_id": "two"}, {"user_id": 3}])
    assert _count(queue) == 0


@pytest.mark.parametrize("kind", ["idempotency_key", "unique_key"])
def test_one_key_for_many_is_refused(queue, kind):
    with pytest.raises(InvalidOption, match="draft each"):
        send_welcome.using(**{kind: "seven"}).enqueue_many([{"user_id": 1}])
    assert _count(queue) == 0


# Duplicates


@pytest.mark.parametrize("kind", ["idempotency_key", "unique_key"])
def test_a_duplicate_gets_the_job_that_is_there(queue, kind):
    first = send_welcome.using(**{kind: "seven"}).enqueue(7)
    again = send_welcome.using(**{kind: "seven"}).enqueue(7)
    assert (again.id, again.created, again.outcome, again.payload_differs) == (
        first.id,
        False,
        Admission.EXISTING,
        False,
    )
    assert _count(queue) == 1


def test_a_duplicate_with_another_payload_is_told_and_the_stored_one_stands(queue):
    first = send_welcome.using(idempotency_key="seven").enqueue(7)
    again = jobqueue.enqueue("send_welcome", {"user_id": 8}, idempotency_key="seven")
    assert again.payload_differs
    assert jobqueue.get(first.id).payload["user_id"] == 7


def test_the_key_of_another_type_is_an_error_that_names_both(queue):
    first = send_welcome.using(idempotency_key="seven").enqueue(7)
    with pytest.raises(IdempotencyMismatch, match=f"{first.id}.*'send_welcome'.*'resize_image'"):
        resize_image.using(idempotency_key="seven").enqueue(image_id=7)
    assert _count(queue) == 1


def test_a_key_of_chosen_fields_finds_the_same_work(queue):
    keys = [resize_image.key("image_id", image_id=7, width=width) for width in (800, 1_600)]
    first, again = (resize_image.using(idempotency_key=key).enqueue(image_id=7) for key in keys)
    assert again.id == first.id
    other = resize_image.using(idempotency_key=resize_image.key("image_id", image_id=8)).enqueue(image_id=8)
    assert other.created


# Any JSON


NUMBERS = st.sampled_from([10**300, -(10**4_000), 2**53 + 1, 2**64, 1e16, 1e22, 5e-324, 1e-7, 0.1 + 0.2, -0.0])
TEXTS = st.text(alphabet=st.characters(), max_size=8) | st.sampled_from(["\\u0000", "\0", "\\\0", "\ud83d\ude00", '"'])
# Beyond, jsonb turns a whole float into an integer, which is the decimal and not the binary number.
FLOATS = st.floats().filter(lambda number: not 1e16 <= abs(number) < float("inf"))
SCALARS = st.none() | st.booleans() | st.integers() | FLOATS | NUMBERS | TEXTS
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4), max_leaves=12
)


@hypothesis_settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(value=JSON)
def test_any_json_is_refused_or_comes_back_equal(queue, value):
    before = _count(queue)
    try:
        receipt = keep.enqueue(value)
    except (PayloadRefused, ValidationError):
        assert _count(queue) == before
        return
    (claim,) = take(queue, 1, types=frozenset({"keep"}))
    assert claim.id == receipt.id
    assert registry.get("keep").call(claim) == value
    assert jobqueue.get(receipt.id).payload == {"value": value}


@pytest.mark.parametrize("levels", [50, 190])
def test_a_deep_payload_that_is_accepted_comes_back(queue, levels):
    value = {}
    for _ in range(levels):
        value = {"a": [value]} if levels < 100 else {"a": value}
    receipt = anything.enqueue(value)
    assert jobqueue.get(receipt.id).payload == value
    (claim,) = take(queue, 1, types=frozenset({"anything"}))
    assert registry.get("anything").payload.load(claim.payload, 1) == value


# Async


def test_async_enqueueing_is_part_of_the_callers_transaction(queue):
    with pytest.raises(ZeroDivisionError), queue.atomic():
        async_to_sync(send_welcome.aenqueue)(7)
        assert _count(queue) == 1
        raise ZeroDivisionError
    assert _count(queue) == 0


def test_async_enqueueing_refuses_as_the_other_does(queue):
    with pytest.raises(ValidationError):
        async_to_sync(send_welcome.using(priority=1).aenqueue)("seven")
    with pytest.raises(UnknownJobType):
        async_to_sync(jobqueue.aenqueue)("nobody")


def test_many_are_stored_and_one_is_read_from_async_code(queue):
    async def view():
        several = await send_welcome.using(tenant="acme").aenqueue_many([{"user_id": 1}, {"user_id": 2}])
        mixed = await jobqueue.aenqueue_many([send_welcome.draft(3), resize_image.draft(image_id=4)])
        return [await jobqueue.aget(one.id) for one in (*several, *mixed)]

    jobs = async_to_sync(view)()
    assert [one.payload.get("user_id") for one in jobs] == [1, 2, 3, None]
    assert [one.tenant for one in jobs] == ["acme", "acme", None, None]
    with pytest.raises(JobNotFound):
        async_to_sync(jobqueue.aget)("01J")


# What comes out at the other end


def test_a_handler_gets_its_payload_and_its_context_from_a_claim(queue):
    receipt = resize_image.using(tenant="acme").enqueue(image_id=7)
    (claim,) = take(queue, 1, types=frozenset({"resize_image"}))
    assert registry.get(claim.type).call(claim) == {"image_id": 7, "width": 800, "attempt": 1}
    assert (claim.id, claim.tenant, claim.timeout) == (receipt.id, "acme", timedelta(seconds=30))


def test_an_old_row_under_a_former_name_runs_and_knows_its_name(queue):
    job_id = put(queue, "greet", payload='{"name": "Ada"}')
    (claim,) = take(queue, 1, types=registry.names)
    assert claim.type == "greet"
    assert asyncio.run(registry.get(claim.type).call(claim)) == f"hello Ada from {job_id}"


# Without time zones


@pytest.fixture
def naive(settings):
    settings.USE_TZ = False
    settings.TIME_ZONE = "Europe/Berlin"


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(datetime(2026, 1, 16, 13, 0), id="naive"),  # noqa: DTZ001
        pytest.param(NOON, id="aware"),
        pytest.param(NOON.astimezone(BERLIN), id="aware elsewhere"),
    ],
)
def test_without_time_zones_moments_mean_what_they_say(naive, queue, given):
    stored = jobqueue.get(send_welcome.using(scheduled_at=given, expires_at=given + FOREVER).enqueue(7).id)
    assert (stored.scheduled_at, stored.expires_at) == (NOON, NOON + FOREVER)
    assert stored.scheduled_at.tzinfo is UTC
    (claim,) = take(queue, 1, types=frozenset({"send_welcome"}))
    assert (claim.scheduled_at, claim.expires_at) == (NOON, NOON + FOREVER)


def test_without_time_zones_a_job_is_still_due_at_once(naive, queue):
    receipt = send_welcome.enqueue(7)
    assert abs(SYSTEM.now() - jobqueue.get(receipt.id).scheduled_at) < timedelta(minutes=1)
    assert [claim.id for claim in take(queue, 1, types=frozenset({"send_welcome"}))] == [receipt.id]
