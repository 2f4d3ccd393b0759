"""Tests of the decision after an attempt that was ended from outside, where no application code may run."""

from __future__ import annotations

from datetime import timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobqueue.policy.retry import Exponential, Fixed, RetryPolicy, decide, decide_cut_short
from jobqueue.records import Again, AttemptCount, Dead

SECONDS = st.integers(0, 3_600)
DECLARED = st.builds(Fixed, SECONDS, SECONDS) | st.builds(Exponential, SECONDS, SECONDS, SECONDS)
ATTEMPTS = st.integers(1, 100).flatmap(lambda most: st.builds(AttemptCount, st.integers(1, most + 1), st.just(most)))


def dice(seed=0):
    return Random(seed)


def _never(attempt, rng):
    raise AssertionError("the application's own function was asked")


@pytest.mark.parametrize("reason", ["timed out", "crashed"])
@pytest.mark.parametrize("attempt", [AttemptCount(3, 3), AttemptCount(1, 1), AttemptCount(4, 3)])
def test_the_last_attempt_was_the_last(attempt, reason):
    assert decide_cut_short(RetryPolicy(Fixed(7)), attempt, reason, rng=dice()) == Dead(reason)


@pytest.mark.parametrize(
    ("delay", "attempt", "seconds"),
    [
        (Fixed(7), AttemptCount(1, 3), 7),
        (Fixed(7), AttemptCount(2, 3), 7),
        (Exponential(base=5, jitter=0), AttemptCount(1, 3), 10),
        (Exponential(base=5, jitter=0), AttemptCount(2, 3), 20),
        (Exponential(base=5, cap=15, jitter=0), AttemptCount(2, 3), 15),
    ],
)
def test_a_declared_delay_is_kept(delay, attempt, seconds):
    decision = decide_cut_short(RetryPolicy(delay), attempt, "crashed", rng=dice())
    assert decision == Again(timedelta(seconds=seconds))


@given(delay=DECLARED, attempt=ATTEMPTS, seed=st.integers())
def test_being_cut_short_is_treated_like_any_other_failure(delay, attempt, seed):
    policy = RetryPolicy(delay)
    decision = decide_cut_short(policy, attempt, "attempts used up", rng=dice(seed))
    assert decision == decide(policy, attempt, TimeoutError(), rng=dice(seed))


@given(attempt=st.integers(1, 99), seed=st.integers())
def test_a_function_of_ones_own_is_not_asked(attempt, seed):
    decision = decide_cut_short(RetryPolicy(_never), AttemptCount(attempt, 100), "crashed", rng=dice(seed))
    assert decision == Again(Exponential()(attempt, dice(seed)))


@pytest.mark.parametrize(
    "lists",
    [{"retry_on": ()}, {"discard_on": (BaseException,)}, {"retry_on": (OSError,), "discard_on": (TimeoutError,)}],
)
def test_lists_of_exceptions_are_not_asked(lists):
    decision = decide_cut_short(RetryPolicy(Fixed(7), **lists), AttemptCount(1, 3), "crashed", rng=dice())
    assert decision == Again(timedelta(seconds=7))
