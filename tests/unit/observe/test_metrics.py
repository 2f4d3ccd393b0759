"""Tests of the metrics of a window, with gaps, and of the current depth."""

from __future__ import annotations

from datetime import timedelta
from itertools import product
from random import Random

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext

from jobqueue.backends.sql.ports import metric_lengths
from jobqueue.observe.metrics import WINDOWS, Times, depths, figures
from jobqueue.policy.histogram import ERROR, bucket, percentile, read
from jobqueue.policy.stretches import together
from jobqueue.records import Depth, Lengths, Scope, Share, Tally
from jobqueue.testing.clock import NOON, VirtualClock
from jobqueue.testing.contract.harness import draft, put, put_all

HOUR, DAY, WEEK = WINDOWS["hour"], WINDOWS["day"], WINDOWS["week"]
NONE = Times(None, None, None)


@pytest.fixture
def clock(queue):
    """The queue's clock, three minutes and twenty seconds after noon."""
    queue.clock = VirtualClock(NOON + timedelta(minutes=3, seconds=20))
    return queue.clock


def add(queue, minute, queue_name="images", job_type="resize", **values):
    """Add what happened so many minutes after noon."""
    assert queue.metrics.add(NOON + timedelta(minutes=minute), [Tally(queue_name, job_type, **values)])


def minutes(points):
    return [(one.begins_at - NOON) / timedelta(minutes=1) for one in points]


@pytest.mark.parametrize(
    ("window", "first", "last"), [(HOUR, -56, 3), (DAY, 10 - 24 * 60, 0), (WEEK, 60 - 7 * 24 * 60, 0)], ids=str
)
def test_a_window_has_a_point_for_each_stretch_and_ends_with_the_present_one(queue, clock, window, first, last):
    found = figures(window)
    span = window.span / timedelta(minutes=1)
    assert minutes(found.points) == [first + span * place for place in range(window.length // window.span)]
    assert minutes(found.points)[-1] == last
    assert minutes([found.total]) == [first]
    assert found.window is window


def test_where_nothing_happened_there_are_zeros_and_no_times(queue, clock):
    found = figures(HOUR)
    assert {one[1:] for one in (*found.points, found.total)} == {(0, 0, 0, 0, 0, NONE, NONE, None, None, None, 0)}
    assert (found.success, found.by_type, found.by_queue) == (None, (), ())


def test_what_happened_is_told_of_its_stretch_and_of_the_whole(queue, clock):
    add(queue, 1, completed=8, retried=1, dead_lettered=2, stopped=3, lost=4)
    add(queue, 2, completed=1, dead_lettered=1)
    add(queue, 2, "mail", "greet", completed=3)
    found = figures(HOUR)
    by_minute = {minute: one[1:6] for minute, one in zip(minutes(found.points), found.points, strict=True)}
    assert {minute: counts for minute, counts in by_minute.items() if any(counts)} == {
        1: (8, 1, 2, 3, 4),
        2: (4, 0, 1, 0, 0),
    }
    assert found.total[1:6] == (12, 1, 3, 3, 4)
    assert found.success == 12 / 15


@pytest.mark.parametrize(
    ("window", "minute", "seen"),
    [(HOUR, -56, True), (HOUR, -57, False), (DAY, 10 - 24 * 60, True), (DAY, 9 - 24 * 60, False), (WEEK, -100, True)],
)
def test_a_window_goes_back_to_the_beginning_of_its_first_stretch(queue, clock, window, minute, seen):
    add(queue, minute, completed=1)
    found = figures(window)
    assert found.total.completed == seen
    assert [one.completed for one in found.by_type] == [1] * seen


def test_figures_are_of_one_queue_or_of_one_type_where_that_is_asked(queue, clock):
    add(queue, 0, completed=1, ran=Lengths({bucket(1.0): 1}, 1.0))
    add(queue, 0, "mail", completed=2, ran=Lengths({bucket(9.0): 2}, 18.0))
    add(queue, 0, "mail", "greet", completed=4, dead_lettered=1)
    assert figures(HOUR, queue="mail").total.completed == 6
    assert figures(HOUR, type="resize").total.completed == 3
    assert figures(HOUR, queue="mail", type="resize").total.completed == 2
    assert figures(HOUR, queue="images", type="greet").total.completed == 0
    assert figures(HOUR, type="resize").success == 1.0
    assert figures(HOUR, queue="mail").success == 6 / 7
    mail = figures(HOUR, queue="mail")
    assert [(one.name, one.completed) for one in mail.by_type] == [("greet", 4), ("resize", 2)]
    assert [(one.name, one.completed) for one in mail.by_queue] == [("mail", 6)]
    assert [(one.name, one.mean_ran) for one in figures(HOUR, type="resize").by_queue] == [
        ("mail", 9.0),
        ("images", 1.0),
    ]


def test_times_come_from_all_that_was_counted(queue, clock):
    quick, slow = bucket(0.1), bucket(10.0)
    add(queue, 1, completed=1, ran=Lengths({quick: 90}, 9.0), waited=Lengths({quick: 1}, 0.1))
    add(queue, 2, "mail", completed=1, ran=Lengths({slow: 10}, 100.0))
    found = figures(HOUR)
    by_minute = dict(zip(minutes(found.points), found.points, strict=True))
    assert about(by_minute[1].ran) == (0.1, 0.1, 0.1)
    assert about(by_minute[2].ran) == (10.0, 10.0, 10.0)
    assert by_minute[2].waited == by_minute[3].ran == NONE
    assert about(found.total.ran) == (0.1, 10.0, 10.0)
    assert about(found.total.waited) == (0.1, 0.1, 0.1)


def about(times):
    """The lengths that times stand for: 0.1 or 10 seconds, as far as they can be told."""
    return tuple(next(one for one in (0.1, 10.0) if one / ERROR <= seconds <= one * ERROR) for seconds in times)


def test_the_depth_is_what_was_met_and_unknown_where_nobody_looked(queue, clock):
    put_all(queue, draft(queue="mail"), draft(queue="mail"), draft("greet"))
    clock.advance(60)
    queue.metrics.sample(clock.now())
    found = figures(HOUR)
    assert minutes(found.points)[-1] == 4
    assert [(one.queued, one.in_progress, one.oldest) for one in found.points[-2:]] == [
        (None, None, None),
        (3, 0, 60.0),
    ]
    clock.advance(60)
    latest = figures(HOUR)
    assert [one.queued for one in latest.points[-2:]] == [3, None]
    assert (latest.total.queued, latest.total.in_progress, latest.total.oldest) == (3, 0, 60.0)


def test_the_depth_of_what_was_not_met_is_nothing_where_somebody_looked(queue, clock):
    put(queue, queue="mail")
    queue.metrics.sample(clock.now())
    assert figures(HOUR, queue="mail").points[-1].queued == 1
    elsewhere = figures(HOUR, queue="images")
    assert [one.queued for one in elsewhere.points[-2:]] == [None, 0]
    assert (elsewhere.total.queued, elsewhere.total.oldest) == (0, None)
    assert figures(HOUR, queue="mail", type="resize").total.queued == 1


def test_shares_say_how_much_of_it_was_whose(queue, clock):
    add(queue, 0, completed=3, dead_lettered=1, ran=Lengths({1: 4}, 2.0))
    add(queue, 1, "mail", "greet", stopped=2)
    found = figures(WEEK)
    assert found.by_type == (Share("resize", 3, 0, 1, 0, 0, 0.5), Share("greet", 0, 0, 0, 2, 0, None))
    assert [(one.name, one.success) for one in found.by_queue] == [("images", 0.75), ("mail", None)]


QUEUES, TYPES = ("images", "mail", "rest"), ("greet", "rare", "resize")


def some_tallies(dice):
    """What happened here and there."""
    for _ in range(5):
        lengths = [Lengths({place: 1 + dice.randrange(9) for place in dice.sample(range(60), 5)}, 2.5) for _ in "ab"]
        ends = {"completed": 1 + dice.randrange(99), "retried": dice.randrange(9), "lost": dice.randrange(9)}
        yield Tally(dice.choice(QUEUES), dice.choice(TYPES), **ends, waited=lengths[0], ran=lengths[1])


def test_figures_are_those_of_all_that_was_added_looked_at_one_by_one(queue, clock):
    dice, added = Random(7), []
    for minute in (-50, -50, -31, -2, 0, 3):
        added += [(minute, one) for one in some_tallies(dice)]
        assert queue.metrics.add(NOON + timedelta(minutes=minute), [one for at, one in added[-5:]])
    for place, kind in product(("", *QUEUES), ("", *TYPES)):
        fits = [(at, one) for at, one in added if place in ("", one.queue) and kind in ("", one.type)]
        whole, found = together(one for _at, one in fits), figures(HOUR, queue=place, type=kind)
        assert found.total[1:6] == whole[2:7]
        for told, lengths in ((found.total.waited, whole.waited), (found.total.ran, whole.ran)):
            assert told == Times(*(percentile(lengths.buckets, share) for share in (0.5, 0.95, 0.99)))
        for minute, point in zip(minutes(found.points), found.points, strict=True):
            assert point[1:6] == together(one for at, one in fits if at == minute)[2:7]
        for column, shares in (("type", found.by_type), ("queue", found.by_queue)):
            names = {getattr(one, column) for _at, one in fits}
            parts = {name: together(one for _at, one in fits if getattr(one, column) == name) for name in names}
            assert {share.name: share[1:6] for share in shares} == {name: one[2:7] for name, one in parts.items()}
            means = {name: one.ran.total / one.ran.number for name, one in parts.items()}
            assert {share.name: share.mean_ran for share in shares} == pytest.approx(means)


NARROWINGS = [{}, {"type": "resize"}, {"queue": "images"}, {"queue": "images", "type": "resize"}]


@pytest.mark.parametrize("names", NARROWINGS, ids=str)
def test_figures_cost_few_queries_and_never_look_at_jobs(queue, clock, names):
    for minute in range(0, 3000, 100):
        add(queue, minute - 3000, completed=1)
    with CaptureQueriesContext(connections[queue.alias]) as queries:
        assert figures(WEEK, **names).total.completed == 30
    # Beside what has Postgres read an index in its order.
    texts = [one["sql"] for one in queries if "job_queue" in one["sql"] and "pg_class" not in one["sql"]]
    assert len(texts) == (4 if names else 3)
    assert all('FROM "job_queue_metric"' in text for text in texts)
    # Only what is told in percentiles is read row by row.
    assert sum('"job_queue_metric"."ran"' in text for text in texts) == (2 if names else 1)


@pytest.mark.parametrize("names", [{}, {"queue": "images"}], ids=str)
def test_of_any_number_of_types_one_histogram_a_stretch_is_read(queue, clock, names, monkeypatch):
    seen = []
    monkeypatch.setattr(metric_lengths, "read", lambda *values: seen.extend(values) or read(*values))
    for minute in range(4):
        some = [Tally("images", f"type-{number}", completed=1, ran=Lengths({7: 1}, 1.0)) for number in range(40)]
        assert queue.metrics.add(NOON + timedelta(minutes=minute), some)
    seen.clear()
    assert figures(HOUR, **names).total.completed == 160
    assert len(seen) == (16 if names else 8)  # two of each stretch, and two of all together


def test_depths_tell_what_waits_now(queue, clock):
    queue.operator.pause(Scope.QUEUE, "mail")
    put(queue, queue="mail")
    put(queue, delay=timedelta(hours=1))
    assert depths() == [
        Depth("default", "resize", 1, False, 0, None, 0, False),
        Depth("mail", "resize", 1, False, 1, clock.now(), 0, True),
    ]
