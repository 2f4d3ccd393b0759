"""Tests of the handler's context: progress, requests to stop, and follow-up jobs."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import FrozenInstanceError
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobqueue.errors import Interrupted, InvalidOption, JobQueueError, PayloadRefused, StopReason
from jobqueue.handlers.context import JobContext
from jobqueue.records import Draft

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(exclude_categories=["Cs", "Cc"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=3),
    max_leaves=8,
)


class Attendant:
    """Attends an attempt, and writes down what it is asked."""

    def __init__(self, reason=None):
        self.reason = reason
        self.reports = []
        self.followed = []

    def report(self, text):
        self.reports.append(text)

    def stop_reason(self):
        return self.reason

    def follow(self, target, args, fields):
        self.followed.append((target, args, fields))
        return Draft(id=f"child-{len(self.followed)}", type="greet", payload="{}")


def _context(attendant=None):
    known = {"job_id": "01J", "job_type": "resize", "queue": "images", "attempt": 2, "max_retries": 3, "fence": 4}
    return JobContext(**known, attendant=attendant)


def _reported(*args, **info):
    attendant = Attendant()
    _context(attendant).progress(*args, **info)
    (text,) = attendant.reports
    return json.loads(text)


# Progress


@pytest.mark.parametrize("percent", [0, 0.0, 1, 33.3, 99.999, 100, 100.0])
def test_progress_goes_from_nothing_to_a_hundred(percent):
    assert _reported(percent) == {"percent": percent}


@given(percent=st.floats(0, 100) | st.integers(0, 100), info=st.dictionaries(st.text("xyz", min_size=1), json_values))
def test_whatever_helps_to_see_it_is_reported_with_the_percentage(percent, info):
    assert _reported(percent, **info) == info | {"percent": percent}


@given(percent=st.floats(max_value=0, exclude_max=True) | st.floats(min_value=100, exclude_min=True) | st.just("nan"))
def test_what_is_out_of_bounds_is_refused_and_not_reported(percent):
    attendant = Attendant()
    with pytest.raises(InvalidOption, match=r"^percent must be "):
        _context(attendant).progress(float(percent))
    assert attendant.reports == []


@pytest.mark.parametrize("percent", [-1, 101, -0.1, 100.1])
def test_the_bounds_are_named(percent):
    with pytest.raises(InvalidOption, match=rf"from 0 to 100, got {percent}"):
        _context().progress(percent)


@pytest.mark.parametrize("percent", [None, "50", True, False, Decimal(50), [50], float("nan"), float("inf"), 5 + 0j])
def test_what_is_no_number_is_no_progress(percent):
    with pytest.raises(InvalidOption, match="must be a number"):
        _context(Attendant()).progress(percent)


@pytest.mark.parametrize(
    "info",
    [
        pytest.param({"value": object()}, id="an object"),
        pytest.param({"value": float("nan")}, id="not a number"),
        pytest.param({"value": "a\0b"}, id="a NUL"),
        pytest.param({"value": "\ud800"}, id="half a surrogate pair"),
        pytest.param({"value": "x" * 300_000}, id="too much"),
    ],
)
def test_what_cannot_be_stored_is_refused_where_it_is_said(info):
    attendant = Attendant()
    with pytest.raises(PayloadRefused, match="progress"):
        _context(attendant).progress(50, **info)
    assert attendant.reports == []


def test_mistakes_show_without_a_worker_too():
    _context().progress(50, step="resizing")
    with pytest.raises(InvalidOption):
        _context().progress(101)
    with pytest.raises(PayloadRefused):
        _context().progress(50, value=object())


# When to stop


def test_without_a_reason_nothing_stops():
    for context in (_context(), _context(Attendant())):
        assert context.should_stop() is False
        assert context.checkpoint() is None


@pytest.mark.parametrize("reason", StopReason)
def test_with_a_reason_a_checkpoint_ends_the_attempt(reason):
    context = _context(Attendant(reason))
    assert context.should_stop() is True
    with pytest.raises(Interrupted, match=reason.value) as caught:
        context.checkpoint()
    assert caught.value.reason is reason


def test_a_handler_that_goes_on_after_errors_stops_nevertheless():
    context, rounds = _context(Attendant(StopReason.SHUTDOWN)), 0
    with pytest.raises(Interrupted):
        while True:
            rounds += 1
            with suppress(Exception):
                context.checkpoint()
    assert rounds == 1


def test_the_reason_is_asked_anew_each_time():
    attendant = Attendant()
    context = _context(attendant)
    context.checkpoint()
    attendant.reason = StopReason.CANCELLED
    assert context.should_stop()
    with pytest.raises(Interrupted):
        context.checkpoint()


# What follows


def test_a_follow_up_job_is_left_to_the_attendant():
    attendant = Attendant()
    context = _context(attendant)
    assert context.enqueue("greet", {"name": "ada"}) == "child-1"
    assert context.enqueue("greet", name="ada", self=1, target=2) == "child-2"
    assert attendant.followed == [
        ("greet", ({"name": "ada"},), {}),
        ("greet", (), {"name": "ada", "self": 1, "target": 2}),
    ]


def test_where_nobody_completes_the_attempt_nothing_can_follow():
    with pytest.raises(JobQueueError, match=r"ctx\.enqueue\(\) needs a worker"):
        _context().enqueue("greet")


# What it is


def test_a_context_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        _context().attempt = 9


def test_a_context_is_known_by_its_attempt_and_not_by_who_attends_it():
    assert _context() == _context(Attendant())
    assert "attendant" not in repr(_context(Attendant()))
