"""Tests of the bounds of every option, with messages that name the option and its limit."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from jobqueue.errors import InvalidOption
from jobqueue.handlers.job_options import _OF_ONE_JOB
from jobqueue.handlers.options import OPTION_NAMES, Options, in_utc
from jobqueue.handlers.typed_options import JobDefaults, JobOptions

NOON = datetime(2026, 1, 16, 12, 0, tzinfo=UTC)
NAIVE = datetime(2026, 1, 16, 13, 0)  # noqa: DTZ001
BERLIN = ZoneInfo("Europe/Berlin")

GOOD = [
    ("parallel", True),
    ("parallel", None),
    ("queue", "images"),
    ("queue", "a.b:c/d@e-f_1"),
    ("queue", "q" * 100),
    ("priority", 1),
    ("priority", 10),
    ("max_retries", 1),
    ("max_retries", 10_000),
    ("timeout", None),
    ("timeout", 0.5),
    ("timeout", timedelta(days=1)),
    ("delay", 0),
    ("delay", 1.5),
    ("delay", timedelta(days=365)),
    ("scheduled_at", NOON),
    ("scheduled_at", NOON.astimezone(BERLIN)),
    ("expires_at", NOON),
    ("idempotency_key", "k" * 255),
    ("idempotency_key", "any printable text, ä and 🙂 too"),
    ("unique_key", "k" * 255),
    ("tenant", "t" * 100),
    ("workspace", "w" * 100),
]

BAD = [
    ("parallel", "yes", "True or False"),
    ("parallel", 1, "True or False"),
    ("queue", "", "letters, digits"),
    ("queue", None, "letters, digits"),
    ("queue", "two words", "letters, digits"),
    ("queue", "line\n", "letters, digits"),
    ("queue", "q" * 101, "at most 100 characters, got 101"),
    ("priority", 0, "from 1 to 10, got 0"),
    ("priority", 11, "from 1 to 10, got 11"),
    ("priority", 5.0, "from 1 to 10"),
    ("priority", "5", "from 1 to 10"),
    ("priority", True, "from 1 to 10"),
    ("priority", None, "from 1 to 10"),
    ("max_retries", 0, "from 1 to 10000, got 0"),
    ("max_retries", -1, "from 1 to 10000, got -1"),
    ("max_retries", 10_001, "from 1 to 10000"),
    ("max_retries", 2**40, "from 1 to 10000"),
    ("timeout", 0, "longer than zero"),
    ("timeout", -1, "not be negative"),
    ("timeout", float("nan"), "length of time"),
    ("timeout", float("inf"), "length of time"),
    ("timeout", "5", "seconds or a timedelta"),
    ("delay", -0.1, "not be negative"),
    ("delay", timedelta(seconds=-1), "not be negative"),
    ("delay", float("inf"), "length of time"),
    ("delay", "soon", "seconds or a timedelta"),
    ("delay", None, "seconds or a timedelta"),
    ("scheduled_at", NAIVE, "aware datetime"),
    ("scheduled_at", "2026-01-16T12:00:00Z", "a datetime"),
    ("scheduled_at", NOON.date(), "a datetime"),
    ("expires_at", NAIVE, "aware datetime"),
    ("expires_at", 1_768_564_800, "a datetime"),
    ("idempotency_key", "", "printable text"),
    ("idempotency_key", 7, "printable text"),
    ("idempotency_key", b"seven", "printable text"),
    ("idempotency_key", "a\0b", "printable text"),
    ("idempotency_key", "a\nb", "printable text"),
    ("idempotency_key", "\ud800", "printable text"),
    ("idempotency_key", "k" * 256, "at most 255 characters, got 256"),
    ("unique_key", "", "printable text"),
    ("unique_key", "k" * 256, "at most 255 characters, got 256"),
    ("tenant", "", "printable text"),
    ("workspace", "", "printable text"),
    ("workspace", "w" * 101, "at most 100 characters, got 101"),
    ("tenant", 7, "printable text"),
    ("tenant", "t" * 101, "at most 100 characters, got 101"),
    ("debounce", 0, "longer than zero"),
    ("debounce", "soon", "seconds or a timedelta"),
    ("max_wait", -1, "not be negative"),
    ("throttle", 0, "longer than zero"),
    ("replace_payload", 1, "True or False"),
]

#: No date of Python's is that late, so a job with one could be stored and never be read again.
TOO_LONG = [("delay", timedelta.max), ("timeout", timedelta.max)]

#: Dates that UTC has no year for.
TOO_FAR = [
    datetime.max.replace(tzinfo=timezone(timedelta(hours=-12))),
    datetime.min.replace(tzinfo=timezone(timedelta(hours=12))),
]


@pytest.mark.parametrize(("option", "value"), GOOD)
def test_a_value_within_its_bounds_is_taken(option, value):
    assert getattr(Options(**{option: value}), option) == value


@pytest.mark.parametrize(("option", "value", "complaint"), BAD)
def test_a_value_outside_its_bounds_is_refused_with_the_option_and_the_limit(option, value, complaint):
    with pytest.raises(InvalidOption, match=complaint) as caught:
        Options(**{option: value})
    assert caught.value.option == option
    assert str(caught.value).startswith(f"{option} ")


@pytest.mark.parametrize(("option", "value"), TOO_LONG)
def test_a_length_that_ends_after_the_last_date_is_refused(option, value):
    with pytest.raises(InvalidOption, match=f"^{option} "):
        Options(**{option: value})


@pytest.mark.parametrize("option", ["scheduled_at", "expires_at"])
@pytest.mark.parametrize("moment", TOO_FAR, ids=["after the last", "before the first"])
def test_a_moment_outside_of_utcs_years_is_refused(option, moment):
    with pytest.raises(InvalidOption, match=f"^{option} "):
        Options(**{option: moment})


DEBOUNCED = {"unique_key": "page 7", "debounce": 10, "max_wait": 60}


@pytest.mark.parametrize(
    "options",
    [
        DEBOUNCED,
        {**DEBOUNCED, "max_wait": 10, "replace_payload": True},
        {"unique_key": "page 7", "throttle": 60},
        {"unique_key": "page 7", "throttle": 60, "delay": 5},
    ],
)
def test_options_for_calls_that_repeat_are_taken_together(options):
    assert Options(**options).unique_key == "page 7"


@pytest.mark.parametrize(
    ("options", "named", "complaint"),
    [
        ({"debounce": 10, "max_wait": 60}, "debounce", "needs unique_key"),
        ({"throttle": 10}, "throttle", "needs unique_key"),
        ({"unique_key": "a", "debounce": 10}, "max_wait", "must be given with debounce"),
        ({"unique_key": "a", "debounce": 10, "max_wait": 9}, "max_wait", "not be shorter than debounce"),
        ({"unique_key": "a", "max_wait": 9}, "max_wait", "needs debounce"),
        ({"unique_key": "a", "replace_payload": True}, "replace_payload", "needs debounce"),
        ({**DEBOUNCED, "throttle": 5}, "throttle", "cannot be combined with debounce"),
        ({**DEBOUNCED, "delay": 5}, "debounce", "cannot be combined with delay"),
        ({**DEBOUNCED, "scheduled_at": NOON}, "debounce", "cannot be combined with delay or scheduled_at"),
        ({**DEBOUNCED, "unique_key": None, "idempotency_key": "a"}, "debounce", "needs unique_key"),
    ],
)
def test_options_for_calls_that_repeat_are_refused_with_what_is_missing(options, named, complaint):
    with pytest.raises(InvalidOption, match=complaint) as caught:
        Options(**options)
    assert caught.value.option == named


def test_every_option_has_been_tried_with_good_and_with_bad_values():
    assert {one.name for one in fields(Options)} == OPTION_NAMES
    of_repeats = {"debounce", "max_wait", "replace_payload", "throttle"}
    assert {option for option, _ in GOOD} | of_repeats == {option for option, _, _ in BAD} == OPTION_NAMES


def test_a_message_shows_no_more_than_the_beginning_of_a_long_value():
    with pytest.raises(InvalidOption) as caught:
        Options(queue="not a name" * 1_000)
    assert len(str(caught.value)) < 200


def test_two_keys_for_one_job_are_refused():
    with pytest.raises(InvalidOption, match="idempotency_key") as caught:
        Options(idempotency_key="a", unique_key="b")
    assert caught.value.option == "unique_key"


def test_a_delay_and_a_moment_for_one_job_are_refused():
    with pytest.raises(InvalidOption, match="scheduled_at") as caught:
        Options(delay=5, scheduled_at=NOON)
    assert caught.value.option == "delay"


def test_without_time_zones_a_naive_moment_is_taken(settings):
    settings.USE_TZ = False
    assert Options(scheduled_at=NAIVE, expires_at=NAIVE).scheduled_at == NAIVE


def test_a_naive_moment_is_read_in_the_projects_time_zone(settings):
    settings.USE_TZ = False
    settings.TIME_ZONE = "Europe/Berlin"
    assert in_utc(NAIVE) == NOON


def test_an_aware_moment_is_the_same_moment_in_utc():
    assert in_utc(NOON.astimezone(BERLIN)) == NOON
    assert in_utc(NOON.astimezone(BERLIN)).tzinfo is UTC


def test_no_moment_stays_none():
    assert in_utc(None) is None


def test_a_type_checker_knows_every_option():
    assert set(JobOptions.__annotations__) == OPTION_NAMES
    assert set(JobDefaults.__annotations__) == OPTION_NAMES - _OF_ONE_JOB
