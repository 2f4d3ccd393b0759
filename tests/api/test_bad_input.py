"""Tests of bad input, which must raise an error that names the field and the limit, and store nothing."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from datetime import UTC, date, datetime, timedelta

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.db import DatabaseError, connections
from pydantic import ValidationError

import jobqueue
from jobqueue import InvalidOption, NotMigrated, PayloadRefused, UnknownJobType, signals
from jobqueue.models import Job
from jobqueue.policy.leases import settle_overdue
from jobqueue.records import ClaimRequest, Scope
from jobqueue.testing.contract.harness import take
from tests.app.jobs import anything, keep, resize_image, send_welcome, weigh

NAN = float("nan")
NAIVE = datetime(2026, 1, 16, 13, 0)  # noqa: DTZ001


@pytest.fixture
def nothing_stored(queue):
    """Fail the test if it leaves a job, or anybody was told of one."""
    heard = []

    def receive(**facts):
        heard.append(facts)

    signals.enqueued.connect(receive)
    yield
    signals.enqueued.disconnect(receive)
    assert Job.objects.using(queue.alias).count() == 0
    assert heard == []


def _large(settings):
    settings.JOBQUEUE = {**settings.JOBQUEUE, "MAX_PAYLOAD_BYTES": 1_000}
    return {"text": "a" * 1_000}


PAYLOADS = [
    pytest.param("send_welcome", {"user_id": "seven"}, ValidationError, ["user_id"], id="a wrong type"),
    pytest.param("send_welcome", {}, ValidationError, ["user_id"], id="a missing field"),
    pytest.param("send_welcome", {"user_id": 7, "userid": 8}, ValidationError, ["userid"], id="an unknown field"),
    pytest.param("send_welcome", None, ValidationError, ["user_id"], id="no payload at all"),
    pytest.param("resize_image", {"image_id": None}, ValidationError, ["image_id"], id="a missing value of a model"),
    pytest.param("resize_image", ["image_id"], ValidationError, [], id="a list for a model"),
    pytest.param("anything", {7: "seven"}, ValidationError, ["7"], id="a key that is no text"),
    pytest.param("anything", {"x": {7: "seven"}}, PayloadRefused, ["x", "7", "not text"], id="such a key deeper down"),
    pytest.param("weigh", {"parcel_id": 7, "kilos": NAN}, PayloadRefused, ["kilos"], id="NaN in a field for numbers"),
    pytest.param("anything", {"x": [NAN]}, PayloadRefused, ["x.0"], id="NaN where anything is allowed"),
    pytest.param("anything", {"x": float("inf")}, PayloadRefused, ["x"], id="infinity"),
    pytest.param("anything", {"x": b"seven"}, PayloadRefused, ["x", "bytes"], id="bytes"),
    pytest.param("anything", {"x": (1, 2)}, PayloadRefused, ["x", "tuple"], id="a tuple"),
    pytest.param("anything", {"x": NAIVE}, PayloadRefused, ["x", "datetime"], id="a naive datetime"),
    pytest.param("anything", {"x": date(2026, 1, 16)}, PayloadRefused, ["x", "date"], id="a date"),
    pytest.param("anything", {"x": "\0"}, PayloadRefused, ["NUL"], id="NUL"),
    pytest.param("anything", {"x": "\ud800"}, PayloadRefused, ["surrogate"], id="half of a surrogate pair"),
    pytest.param("anything", {"x": 10**5_000}, PayloadRefused, ["4300 digits"], id="a number of 5,000 digits"),
    pytest.param("anything", {"x": object()}, PayloadRefused, ["object"], id="any object"),
]


@pytest.mark.parametrize(("name", "payload", "error", "words"), PAYLOADS)
def test_a_bad_payload_is_refused_by_name_and_stores_nothing(queue, nothing_stored, name, payload, error, words):
    with pytest.raises(error) as caught:
        jobqueue.enqueue(name, payload)
    assert all(word in str(caught.value) for word in words)


HANDLERS = {"send_welcome": send_welcome, "resize_image": resize_image, "anything": anything, "weigh": weigh}


@pytest.mark.parametrize(("name", "payload", "error", "words"), PAYLOADS)
def test_a_bad_payload_among_many_is_refused_and_stores_nothing(queue, nothing_stored, name, payload, error, words):
    if payload is None:
        payload = {}
    good = {"send_welcome": {"user_id": 1}, "resize_image": {"image_id": 1}, "anything": {}, "weigh": None}[name]
    with pytest.raises(error):
        HANDLERS[name].enqueue_many([*([good] if good is not None else []), payload])


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda: send_welcome.enqueue(), id="too few arguments"),
        pytest.param(lambda: send_welcome.enqueue(7, "en", 8), id="too many arguments"),
        pytest.param(lambda: send_welcome.enqueue(7, langage="en"), id="a misspelt one"),
        pytest.param(lambda: send_welcome.enqueue(7, user_id=7), id="one given twice"),
        pytest.param(lambda: send_welcome.enqueue(zz=1), id="one that is not there"),
        pytest.param(lambda: send_welcome.draft(zz=1), id="a draft"),
        pytest.param(lambda: send_welcome.enqueue_many([{"zz": 1}]), id="one of many"),
        pytest.param(lambda: jobqueue.enqueue("send_welcome", {"zz": 1}), id="by name"),
        pytest.param(lambda: resize_image.enqueue({"image_id": 7}, width=1), id="the payload and its fields at once"),
        pytest.param(lambda: resize_image.enqueue({"image_id": 7}, 1), id="two payloads"),
    ],
)
def test_a_call_that_does_not_fit_is_refused_in_one_way(queue, nothing_stored, call):
    with pytest.raises(ValidationError):
        call()


def test_a_payload_over_the_limit_is_refused_with_the_limit(queue, nothing_stored, settings):
    with pytest.raises(PayloadRefused) as caught:
        anything.enqueue(_large(settings))
    assert all(word in str(caught.value) for word in ("payload", "MAX_PAYLOAD_BYTES", "1,000", "1,011"))


def test_the_limit_of_a_payload_is_there_by_default(queue, nothing_stored):
    with pytest.raises(PayloadRefused, match="262,144"):
        anything.enqueue({"text": "a" * 262_144})


def test_a_depth_of_a_hundred_thousand_is_refused(queue, nothing_stored):
    value = {}
    for _ in range(100_000):
        value = {"a": value}
    with pytest.raises(PayloadRefused):
        keep.enqueue(value)


OPTIONS = [
    ("priority", 0, "from 1 to 10, got 0"),
    ("priority", 11, "from 1 to 10, got 11"),
    ("priority", "high", "from 1 to 10"),
    ("queue", "q" * 500, "at most 100 characters, got 500"),
    ("queue", "", "letters"),
    ("idempotency_key", "k" * 10_240, "at most 255 characters, got 10240"),
    ("idempotency_key", "", "printable"),
    ("unique_key", "k" * 10_240, "at most 255 characters, got 10240"),
    ("max_retries", 0, "from 1 to 10000, got 0"),
    ("max_retries", -3, "from 1 to 10000, got -3"),
    ("tenant", "t" * 500, "at most 100 characters, got 500"),
    ("scheduled_at", NAIVE, "aware datetime"),
    ("expires_at", NAIVE, "aware datetime"),
    ("delay", -1, "negative"),
    ("timeout", 0, "longer than zero"),
]


@pytest.mark.parametrize(("option", "value", "complaint"), OPTIONS)
def test_a_bad_option_is_refused_with_its_name_and_its_limit_and_stores_nothing(
    queue, nothing_stored, option, value, complaint
):
    for call in (
        lambda: send_welcome.using(**{option: value}).enqueue(7),
        lambda: jobqueue.enqueue("send_welcome", {"user_id": 7}, **{option: value}),
    ):
        with pytest.raises(InvalidOption, match=complaint) as caught:
            call()
        assert str(caught.value).startswith(option)


def test_an_option_that_does_not_exist_is_refused_with_those_that_do(queue, nothing_stored):
    with pytest.raises(InvalidOption, match=r"prority .*priority"):
        jobqueue.enqueue("send_welcome", {"user_id": 7}, prority=1)


@pytest.mark.parametrize(
    ("name", "words"),
    [("resize_imge", ["resize_image"]), ("greet.v3", ["greet.v2"]), ("xyzzy", ["INSTALLED_APPS"]), ("", [])],
)
def test_an_unknown_type_is_refused_with_the_nearest_names(queue, nothing_stored, name, words):
    with pytest.raises(UnknownJobType) as caught:
        jobqueue.enqueue(name, {})
    assert all(word in str(caught.value) for word in [repr(name), *words])


@pytest.mark.parametrize(
    "option",
    [
        pytest.param({"delay": timedelta.max}, id="a delay"),
        pytest.param({"timeout": timedelta.max}, id="a time limit"),
        pytest.param({"scheduled_at": datetime.max.replace(tzinfo=UTC), "delay": 0}, id="a moment"),
    ],
)
def test_a_time_that_cannot_be_read_back_is_never_stored(queue, option):
    with suppress(InvalidOption):
        job_id = send_welcome.using(**option).enqueue(7).id
        assert jobqueue.get(job_id).id == job_id
    assert queue.cycle("me", (), ClaimRequest(limit=9, types=frozenset({"send_welcome"}))).refused == ()


STRANGE = [
    ("default", "timeout", "1e300"),
    ("default", "scheduled_at", "'2026-02-30T12:00:00Z'"),
    ("default", "expires_at", "'9999-19-39T12:00:00Z'"),
    ("default", "created_at", "'0000-01-01T00:00:00Z'"),
    ("postgres", "timeout", "1e300"),
    ("postgres", "timeout", "'infinity'"),
    ("postgres", "scheduled_at", "'-infinity'"),
    ("postgres", "expires_at", "'infinity'"),
]


@pytest.mark.parametrize(
    ("alias", "column", "value"),
    [pytest.param(*case, marks=pytest.mark.postgres if case[0] == "postgres" else ()) for case in STRANGE],
    indirect=["alias"],
)
def test_a_foreign_row_with_a_strange_time_is_refused_or_stops_no_other(queue, column, value):
    values = dict.fromkeys(("scheduled_at", "created_at", "updated_at"), "'2026-01-16T12:00:00Z'") | {column: value}
    with connections[queue.alias].cursor() as cursor, suppress(DatabaseError):
        cursor.execute(
            f"INSERT INTO job_queue (id, type, priority, payload, {', '.join(values)}) "
            f"VALUES ('foreign', 'send_welcome', 1, '{{}}', {', '.join(values.values())})"
        )
    receipt = send_welcome.enqueue(7)
    assert receipt.id in {claim.id for claim in take(queue, 2, types=frozenset({"send_welcome"}))}


# Settings


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"MAX_PAYLOAD_BYTES": "big"}, ["MAX_PAYLOAD_BYTES", "'big'", "64 MiB"]),
        ({"MAX_PAYLOAD_BYTES": 0}, ["MAX_PAYLOAD_BYTES", "0"]),
        ({"DATABASE": None}, ["DATABASE", "None"]),
        (["DATABASE"], ["JOBQUEUE", "dict", "list"]),
    ],
)
def test_a_setting_that_will_not_do_stops_the_caller_with_one_sentence(queue, nothing_stored, settings, setting, words):
    settings.JOBQUEUE = setting
    with pytest.raises(ImproperlyConfigured) as caught:
        send_welcome.enqueue(7)
    assert all(word in str(caught.value) for word in words)
    assert str(caught.value).count("\n") == 0
    settings.JOBQUEUE = {"DATABASE": queue.alias}


# A database without migrations


@contextmanager
def _without_tables(alias):
    call_command("migrate", "jobqueue", "zero", database=alias, verbosity=0)
    try:
        yield
    finally:
        call_command("migrate", "jobqueue", database=alias, verbosity=0)


def _calls(queue):
    draft = send_welcome.draft(7)
    return {
        "enqueue": lambda: send_welcome.enqueue(7),
        "enqueue by name": lambda: jobqueue.enqueue("send_welcome", {"user_id": 7}),
        "enqueue with a key": lambda: send_welcome.using(idempotency_key="seven").enqueue(7),
        "enqueue many": lambda: send_welcome.enqueue_many([{"user_id": 7}, {"user_id": 8}]),
        "get": lambda: jobqueue.get(draft.id),
        "cycle": lambda: queue.cycle("me", (), ClaimRequest(limit=1, types=frozenset({"send_welcome"}))),
        "sweep": lambda: queue.sweep(settle_overdue),
        "stats": queue.jobs.stats,
        "retry": lambda: queue.operator.retry([draft.id]),
        "cancel": lambda: queue.operator.cancel([draft.id]),
        "purge": lambda: queue.operator.purge([draft.id]),
        "pause": lambda: queue.operator.pause(Scope.QUEUE, "mail"),
        "resume": lambda: queue.operator.resume(Scope.QUEUE, "mail"),
        "pauses": queue.operator.pauses,
    }


def test_a_database_without_migrations_is_told_to_migrate_in_one_sentence(queue):
    told = {}
    with _without_tables(queue.alias):
        for name, call in _calls(queue).items():
            with pytest.raises(NotMigrated) as caught:
                call()
            told[name] = str(caught.value)
    option = "" if queue.alias == "default" else f" --database={queue.alias}"
    sentence = f'The database "{queue.alias}" has no job queue of this release yet: run "manage.py migrate{option}".'
    assert set(told.values()) == {sentence}


def test_a_database_without_migrations_is_told_inside_a_transaction_too(queue):
    with _without_tables(queue.alias), pytest.raises(NotMigrated), queue.atomic():
        send_welcome.enqueue(7)


def test_after_migrating_the_queue_works(queue):
    with _without_tables(queue.alias):
        pass
    assert send_welcome.enqueue(7).created


@pytest.mark.parametrize("column", ["attempts", "max_retries", "fence"])
@pytest.mark.parametrize("value", ["2147483647", "'x'"])
def test_a_count_that_would_stop_a_claim_is_refused_by_the_database(queue, column, value):
    receipt = send_welcome.enqueue(7)
    with connections[queue.alias].cursor() as cursor, pytest.raises(DatabaseError):
        cursor.execute(f"UPDATE job_queue SET {column} = {value}")
    assert [claim.id for claim in take(queue, 1, types=frozenset({"send_welcome"}))] == [receipt.id]
