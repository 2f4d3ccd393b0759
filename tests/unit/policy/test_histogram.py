"""Tests of histograms: the error of percentiles is bounded, and sums are exact."""

from __future__ import annotations

import json
from collections import Counter
from math import ceil

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jobqueue.policy.histogram import ERROR, SHORTEST, bucket, buckets, merged, percentile, read, written
from jobqueue.records import Lengths

YEARS = 10 * 365 * 86_400.0
SECONDS = st.one_of(
    st.floats(-3600, YEARS, allow_nan=False),
    st.floats(-8, 8).map(lambda power: 10.0**power),  # as many short ones as long ones
)
SHARES = st.sampled_from([0.01, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0])
COUNTS = st.dictionaries(st.integers(0, 207), st.integers(1, 10**9))
#: What computing in floats may add to the bound.
TRIFLE = 1 + 1e-9


def counted(several):
    return Lengths(Counter(buckets(several)), sum(one for one in several if one > 0))


def exactly(several, share):
    """The percentile by nearest rank, of the lengths themselves; no rank is to depend on how a float is rounded."""
    return sorted(several)[max(1, ceil(share * len(several) - 1e-9)) - 1]


@given(several=st.lists(SECONDS, min_size=1, max_size=300), share=SHARES)
@example(several=[SHORTEST], share=0.5)
@example(several=[YEARS], share=0.5)
@example(several=[-3600.0], share=0.5)
@example(several=[float(one) for one in range(1, 101)], share=0.95)
def test_a_percentile_is_off_by_no_more_than_is_promised(several, share):
    exact, told = max(0.0, exactly(several, share)), percentile(counted(several).buckets, share)
    if exact <= SHORTEST:
        assert told == 0.0
    else:
        assert exact / ERROR / TRIFLE <= told <= exact * ERROR * TRIFLE


def test_the_promise_is_nine_percent():
    assert pytest.approx(1.0905, abs=0.0001) == ERROR


def test_the_promise_is_not_kept_by_chance():
    """Half the error is exceeded somewhere: the bound is about as tight as it can be said."""
    worst = max(one / percentile({bucket(one): 1}, 0.5) for one in (1 + number / 1_000 for number in range(1_000)))
    assert 1 + (ERROR - 1) / 2 < worst <= ERROR * TRIFLE


@pytest.mark.parametrize("share", [0.5, 0.95, 0.99])
def test_nothing_has_no_percentile(share):
    assert percentile({}, share) is None


def test_a_percentile_looks_at_how_many_there_are():
    short, long = bucket(0.01), bucket(10.0)
    assert percentile({short: 95, long: 5}, 0.95) == percentile({short: 1}, 0.5)
    assert percentile({short: 94, long: 6}, 0.95) == percentile({long: 1}, 0.5)


@given(seconds=SECONDS)
def test_many_are_counted_as_each_would_be(seconds):
    assert buckets([seconds, 1.0, seconds]) == [bucket(seconds), bucket(1.0), bucket(seconds)]


@given(one=SECONDS, other=SECONDS)
def test_longer_never_falls_into_an_earlier_bucket(one, other):
    assert bucket(min(one, other)) <= bucket(max(one, other))


def test_ten_weeks_need_few_buckets():
    assert bucket(70 * 86_400.0) < 150


@given(several=st.lists(st.lists(SECONDS, max_size=20), max_size=5))
def test_what_was_counted_apart_is_as_if_it_was_counted_together(several):
    apart = merged(counted(part) for part in several)
    whole = counted([one for part in several for one in part])
    assert (apart.buckets, apart.number) == (whole.buckets, sum(map(len, several)))
    assert apart.total == pytest.approx(whole.total)


@given(counts=COUNTS)
def test_what_is_written_as_json_is_read_again(counts):
    text = json.dumps(written(counts))
    assert sum(json.loads(text).values()) == sum(counts.values())
    assert read(json.loads(text)) == counts
    assert read(json.loads(text), {}, {"7": 1}, {"7": 2})[7] == counts.get(7, 0) + 3
