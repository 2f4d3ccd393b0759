"""Tests of stretches: moments belong to one, and the metrics of parts add up to those of the whole."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobqueue.policy.stretches import (
    ALL,
    KEPT,
    MOST_SHARES,
    Met,
    begin_of,
    by_name,
    met,
    shared,
    shares,
    spread,
    together,
)
from jobqueue.records import Depth, Lengths, MetricSum, Share, Tally
from jobqueue.records.gauge import Gauge
from jobqueue.testing.clock import NOON

MOMENTS = st.integers(10**7, 10**16).map(lambda micros: datetime.fromtimestamp(0, UTC) + timedelta(microseconds=micros))


@given(moment=MOMENTS, span=st.sampled_from(sorted(KEPT)))
def test_a_moment_falls_into_the_stretch_that_begins_last_before_it(moment, span):
    begins_at = begin_of(moment, span)
    assert begins_at <= moment < begins_at + timedelta(seconds=span)
    assert begin_of(begins_at, span) == begins_at


def test_longer_stretches_begin_with_shorter_ones():
    moment = datetime(2026, 1, 16, 13, 47, 59, 999_999, UTC)
    assert [begin_of(moment, span).strftime("%H:%M:%S") for span in sorted(KEPT)] == [
        "13:47:00",
        "13:40:00",
        "13:00:00",
    ]


def test_tallies_add_up_by_name_by_queue_and_all_together():
    mine = Tally("images", "resize", completed=1, lost=2, waited=Lengths({1: 1}, 0.5))
    yours = Tally("mail", "greet", completed=10, stopped=3, waited=Lengths({1: 2, 5: 1}, 2.0))
    found = by_name([mine, yours, mine])
    twice = Tally("images", "resize", completed=2, lost=4, waited=Lengths({1: 2}, 1.0))
    assert found == {
        ("images", "resize"): twice,
        ("mail", "greet"): yours,
        ("images", ""): twice._replace(type=""),
        ("mail", ""): yours._replace(type=""),
        ALL: Tally("", "", completed=12, stopped=3, lost=4, waited=Lengths({1: 4, 5: 1}, 3.0)),
    }


def test_what_was_not_told_apart_counts_once_in_each_sum():
    several = [Tally(*name, completed=1) for name in (("mail", "greet"), ("mail", ""), ("", ""), ("", "greet"))]
    found = by_name(several)
    assert {name: one.completed for name, one in found.items()} == {
        ("mail", "greet"): 1,
        ("mail", ""): 2,
        ("", "greet"): 1,
        ALL: 4,
    }


def test_of_nothing_all_together_is_nothing():
    assert by_name([]) == {ALL: together([])} == {ALL: Tally("", "")}


def test_what_is_met_adds_up_and_the_oldest_is_the_oldest_of_all():
    depths = [
        Depth("images", "resize", 7, True, 5, NOON - timedelta(seconds=30), 2, False),
        Depth("mail", "greet", 1, False, 1, NOON + timedelta(seconds=1), 0, True),
        Depth("mail", "rare", 0, False, 0, None, 1, False),
        Depth("mail", "resize", 4, False, 4, NOON - timedelta(seconds=9), 1, False),
    ]
    assert met(depths, NOON) == {
        ("images", "resize"): Met(7, 2, 30.0),
        ("mail", "greet"): Met(1, 0, 0.0),
        ("mail", "rare"): Met(0, 1, None),
        ("mail", "resize"): Met(4, 1, 9.0),
        ("images", ""): Met(7, 2, 30.0, shed=0),
        ("mail", ""): Met(5, 2, 9.0, shed=0),
        ALL: Met(12, 4, 30.0, shed=0),
    }
    assert met([], NOON) == {ALL: Met(0, 0, None, shed=0)}


def test_what_was_shed_is_of_queues_and_of_all():
    found = met(
        [Depth("mail", "greet", 1, False, 0, None, 0, False)], NOON, [Gauge("mail", shed=3), Gauge("x", shed=4)]
    )
    assert [(name, one.shed) for name, one in found.items()] == [
        (("mail", "greet"), None),
        *sorted([(("mail", ""), 3), (("x", ""), 4)], key=lambda one: list(found).index(one[0])),
        (ALL, 7),
    ]
    foreign = [Gauge("a", shed=2**63 - 1), Gauge("b", shed=9), Gauge("c", shed=-1)]
    assert met([], NOON, foreign)[ALL].shed == 2**63 - 1


def test_shares_tell_the_largest_first_with_the_mean_of_what_ran():
    parts = [
        MetricSum("greet", 0, 0, 0, 1, 0, ran=0, ran_for=0.0),
        MetricSum("rare", 0, 0, 0, 0, 0, ran=0, ran_for=0.0),
        MetricSum("resize", 4, 0, 1, 0, 2, ran=5, ran_for=15.0),
    ]
    assert shares(parts) == [
        Share("resize", completed=4, retried=0, dead_lettered=1, stopped=0, lost=2, mean_ran=3.0),
        Share("greet", completed=0, retried=0, dead_lettered=0, stopped=1, lost=0, mean_ran=None),
    ]
    assert shares([]) == []


def test_of_many_shares_the_largest_are_told_and_of_equal_ones_the_first():
    many = [MetricSum(f"type-{number:02}", number // 2, 0, 0, 0, 0, 0, 0.0) for number in range(110)]
    names = [one.name for one in shares(many)]
    assert names[:3] == ["type-108", "type-109", "type-106"]
    assert len(names) == MOST_SHARES


@pytest.mark.parametrize(
    ("groups", "each"), [(0, 10_000), (1, 10_000), (10, 10_000), (11, 9_090), (200, 500), (10**9, 1)]
)
def test_many_groups_are_counted_less_far_each(groups, each):
    assert shared(10_000, groups) == each


@pytest.mark.parametrize(
    ("each", "counts", "further"),
    [
        (9_090, [9_000] + [1] * 10, 9_090),
        (5_882, [5_883] + [1] * 16, 10_000),
        (500, [501] * 9 + [1] * 191, 10_000),
        (500, [501] * 200, 500),
        (500, [501] * 100 + [500] * 100, 500),
        (500, [501] * 100 + [0] * 100, 1_000),
        (500, [], 500),
    ],
)
def test_what_small_groups_leave_goes_to_the_large(each, counts, further):
    assert spread(10_000, each, counts) == further


@pytest.mark.parametrize(
    ("completed", "dead_lettered", "stopped", "success"),
    [(3, 1, 0, 0.75), (3, 1, 96, 0.75), (0, 2, 0, 0.0), (0, 0, 5, None)],
)
def test_success_is_what_was_completed_of_what_came_to_an_end(completed, dead_lettered, stopped, success):
    assert Share("resize", completed, 9, dead_lettered, stopped, 9, None).success == success
