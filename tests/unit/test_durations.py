"""Lengths of time: read, spelled as seconds, and read back."""

from __future__ import annotations

from datetime import timedelta
from math import inf, nan

import pytest

from jobqueue.durations import LONGEST_DURATION, from_seconds, in_seconds, read


@pytest.mark.parametrize(
    ("value", "length"),
    [(90, timedelta(seconds=90)), (0.5, timedelta(milliseconds=500)), (LONGEST_DURATION, LONGEST_DURATION)],
)
def test_seconds_and_timedeltas_are_read(value, length):
    assert read(value) == length


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (True, "must be seconds or a timedelta, got bool"),
        ("90", "must be seconds or a timedelta, got str"),
        (nan, "must be a length of time, got nan"),
        (-1, "must not be negative, got -1"),
        (timedelta(days=3651), "must be at most 3650 days, got "),
    ],
)
def test_anything_else_is_refused_with_what_it_must_be(value, complaint):
    with pytest.raises(ValueError, match=r"^must") as refused:
        read(value)
    assert str(refused.value).startswith(complaint)


@pytest.mark.parametrize("length", [None, timedelta(0), timedelta(days=2, microseconds=1), timedelta(seconds=-1.5)])
def test_a_length_of_time_comes_back_from_its_seconds(length):
    assert from_seconds(in_seconds(length)) == length


@pytest.mark.parametrize(("seconds", "length"), [(nan, None), (inf, LONGEST_DURATION), (-1e300, -LONGEST_DURATION)])
def test_seconds_beyond_all_are_read_as_the_longest(seconds, length):
    assert from_seconds(seconds) == length
