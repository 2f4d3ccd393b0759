"""Tests of moments as text: sorted like time, and read in other programs' forms."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobqueue.clock import SYSTEM, from_text, to_text
from jobqueue.testing import VirtualClock

NOON = datetime(2026, 1, 16, 12, 0, tzinfo=UTC)
ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
MOMENTS = st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30), timezones=ZONES)  # noqa: DTZ001


@given(moment=MOMENTS)
def test_a_moment_comes_back_from_its_text_in_utc(moment):
    back = from_text(to_text(moment))
    assert back == moment
    assert back.tzinfo is UTC


@given(one=MOMENTS, other=MOMENTS)
def test_the_order_of_texts_is_the_order_of_moments(one, other):
    assert (to_text(one) < to_text(other)) == (one < other)


@given(moment=MOMENTS)
def test_every_text_has_the_same_shape(moment):
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", to_text(moment))


@pytest.mark.parametrize(
    "text",
    ["2026-01-16T12:00:00Z", "2026-01-16T12:00:00.0Z", "2026-01-16T12:00:00.000Z", "2026-01-16T13:00:00.000000+01:00"],
)
def test_a_foreign_programs_text_is_read(text):
    assert from_text(text) == NOON
    assert from_text(text).tzinfo is UTC


def test_the_systems_clock_tells_an_aware_moment_in_utc():
    assert SYSTEM.now().tzinfo is UTC


def test_the_systems_monotonic_side_never_goes_back():
    looks = [SYSTEM.monotonic() for _ in range(1_000)]
    assert looks == sorted(looks)


def test_a_virtual_clock_stands_until_it_is_moved():
    clock = VirtualClock(NOON)
    assert (clock.now(), clock.monotonic()) == (clock.now(), clock.monotonic()) == (NOON, 0)


def test_a_virtual_clock_moves_both_its_sides():
    clock = VirtualClock(NOON)
    clock.advance(90)
    clock.advance(timedelta(minutes=1))
    assert (clock.now(), clock.monotonic()) == (NOON + timedelta(seconds=150), 150)


def test_a_virtual_clock_that_is_set_back_still_counts_on():
    clock = VirtualClock(NOON)
    clock.advance(10)
    clock.step_back(timedelta(hours=1))
    assert (clock.now(), clock.monotonic()) == (NOON + timedelta(seconds=10) - timedelta(hours=1), 10)
