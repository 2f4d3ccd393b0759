"""Tests of the decision table for failed attempts, and of the delays of each policy."""

from __future__ import annotations

from datetime import timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobqueue.errors import (
    Cancel,
    Discard,
    InvalidOption,
    JobQueueError,
    PayloadInvalid,
    PayloadTooNew,
    ResultRefused,
    Retry,
    Snooze,
)
from jobqueue.policy.retry import Exponential, Fixed, RetryPolicy, decide, decide_lease_lost, duration
from jobqueue.records import Again, Alone, AttemptCount, Dead, Later, Stopped

FIRST, LAST = AttemptCount(1, 3), AttemptCount(3, 3)
PLAIN = RetryPolicy(delay=Fixed(7))
CHOOSY = RetryPolicy(delay=Fixed(7), retry_on=(OSError,), discard_on=(ConnectionError,))
WAITS = Again(timedelta(seconds=7))
MINUTE = timedelta(minutes=1)


def dice(seed=0):
    return Random(seed)


LENGTHS = st.integers(0, 3_600).map(lambda seconds: timedelta(seconds=seconds))


@pytest.mark.parametrize(
    ("policy", "error", "attempt", "expected"),
    [
        pytest.param(PLAIN, OSError(), FIRST, WAITS, id="an ordinary failure comes again"),
        pytest.param(PLAIN, OSError(), LAST, Dead("attempts used up"), id="the last attempt was the last"),
        pytest.param(PLAIN, OSError(), AttemptCount(1, 1), Dead("attempts used up"), id="one attempt means one"),
        pytest.param(PLAIN, SystemExit(), FIRST, WAITS, id="a handler that exits has failed"),
        pytest.param(CHOOSY, TimeoutError(), FIRST, WAITS, id="a listed failure comes again"),
        pytest.param(CHOOSY, ValueError(), FIRST, Dead("not retryable"), id="an unlisted failure is final"),
        pytest.param(CHOOSY, ConnectionResetError(), FIRST, Dead("not retryable"), id="discard_on is asked first"),
        pytest.param(PLAIN, Retry(), FIRST, WAITS, id="a retry without a delay waits by the policy"),
        pytest.param(CHOOSY, Retry(), FIRST, WAITS, id="a retry needs no entry in retry_on"),
        pytest.param(PLAIN, Retry(60), FIRST, Again(MINUTE), id="a retry names its own delay"),
        pytest.param(PLAIN, Retry(0), FIRST, Again(timedelta(0)), id="a delay of nothing is one"),
        pytest.param(PLAIN, Retry(60), LAST, Dead("attempts used up"), id="a retry after the last attempt is none"),
        pytest.param(PLAIN, Snooze(60), FIRST, Later(MINUTE), id="a snooze is free"),
        pytest.param(PLAIN, Snooze(60), LAST, Later(MINUTE), id="a snooze is free even on the last attempt"),
        pytest.param(PLAIN, Discard(), FIRST, Dead("discarded"), id="discard is final at once"),
        pytest.param(PLAIN, Cancel(), FIRST, Stopped("cancelled"), id="cancel is no failure"),
        pytest.param(PLAIN, Cancel(), LAST, Stopped("cancelled"), id="cancel is no failure on the last attempt"),
        pytest.param(PLAIN, PayloadInvalid(), FIRST, Dead("invalid payload"), id="an invalid payload stays so"),
        pytest.param(CHOOSY, PayloadInvalid(), FIRST, Dead("invalid payload"), id="whatever the policy lists"),
        pytest.param(PLAIN, ResultRefused(), FIRST, Dead("unusable result"), id="done work is not repeated"),
        pytest.param(PLAIN, PayloadTooNew(), LAST, Later(MINUTE), id="a payload from the future waits for its worker"),
        pytest.param(PLAIN, JobQueueError(), FIRST, WAITS, id="an error of the queue is an ordinary failure"),
    ],
)
def test_decision(policy, error, attempt, expected):
    assert decide(policy, attempt, error, rng=dice()) == expected


@pytest.mark.parametrize(
    ("attempt", "crashes", "company", "expected"),
    [
        pytest.param(FIRST, 0, 0, Again(timedelta(0)), id="alone, it comes again at once"),
        pytest.param(LAST, 0, 0, Dead("lease lost"), id="alone on the last attempt, it is given up"),
        pytest.param(FIRST, 0, 3, Alone(), id="in company, it gets a run alone"),
        pytest.param(LAST, 0, 3, Alone(), id="in company, even after the last attempt"),
        pytest.param(FIRST, 1, 3, Again(timedelta(0)), id="a second time, it pays with its attempt"),
        pytest.param(LAST, 1, 3, Dead("lease lost"), id="a second time on the last attempt, it is given up"),
    ],
)
def test_decision_on_a_lost_lease(attempt, crashes, company, expected):
    assert decide_lease_lost(attempt, crash_count=crashes, company=company) == expected


@given(attempt=st.integers(1, 10_000), seed=st.integers())
def test_the_default_wait_is_the_specifications(attempt, seed):
    wait = Exponential()(attempt, dice(seed))
    least = timedelta(seconds=min(2 ** min(attempt, 10), 60))
    assert least <= wait <= least + timedelta(seconds=1)


def test_the_default_jitter_fills_its_second():
    rng = dice()
    jitters = [(Exponential()(6, rng) - MINUTE).total_seconds() for _ in range(2_000)]
    assert min(jitters) < 0.01
    assert max(jitters) > 0.99


def test_the_command_line_tools_waits_can_be_spelled():
    policy = Exponential(base=5, jitter=0)
    assert [policy(attempt, dice()).total_seconds() for attempt in (1, 2, 3)] == [10, 20, 40]


@given(base=LENGTHS, cap=LENGTHS, jitter=LENGTHS, attempt=st.integers(1, 10_000), seed=st.integers())
def test_an_exponential_wait_never_exceeds_cap_and_jitter(base, cap, jitter, attempt, seed):
    wait = Exponential(base, cap, jitter)(attempt, dice(seed))
    assert min(base, cap) <= wait <= cap + jitter


@given(base=LENGTHS, cap=LENGTHS, attempt=st.integers(1, 60))
def test_an_exponential_wait_never_gets_shorter(base, cap, attempt):
    policy = Exponential(base, cap, jitter=0)
    assert policy(attempt, dice()) <= policy(attempt + 1, dice())


@given(delay=LENGTHS, jitter=LENGTHS, attempt=st.integers(1, 10_000), seed=st.integers())
def test_a_fixed_wait_is_the_same_after_every_attempt(delay, jitter, attempt, seed):
    wait = Fixed(delay, jitter)(attempt, dice(seed))
    assert delay <= wait <= delay + jitter
    assert wait == Fixed(delay, jitter)(1, dice(seed))


def test_a_policy_may_be_a_function_of_ones_own():
    policy = RetryPolicy(delay=lambda attempt, rng: timedelta(days=attempt))
    assert decide(policy, AttemptCount(2, 3), OSError(), rng=dice()) == Again(timedelta(days=2))


BAD_LENGTHS = [-1, timedelta(microseconds=-1), float("nan"), float("inf"), float("-inf"), 1e300, "5", None, True]


@pytest.mark.parametrize("value", BAD_LENGTHS)
def test_what_is_no_length_of_time_is_refused_by_name(value):
    with pytest.raises(InvalidOption, match=r"^timeout "):
        duration(value, "timeout")


@pytest.mark.parametrize("field", ["base", "cap", "jitter"])
@pytest.mark.parametrize("value", BAD_LENGTHS)
def test_a_bad_field_of_exponential_is_refused_by_name(field, value):
    with pytest.raises(InvalidOption, match=f"^{field} "):
        Exponential(**{field: value})


@pytest.mark.parametrize("field", ["delay", "jitter"])
@pytest.mark.parametrize("value", BAD_LENGTHS)
def test_a_bad_field_of_fixed_is_refused_by_name(field, value):
    with pytest.raises(InvalidOption, match=f"^{field} "):
        Fixed(**{"delay": 1, field: value})


def test_a_cap_may_be_an_hour_and_no_more():
    assert Exponential(cap=3_600)(64, dice()) <= timedelta(seconds=3_601)
    with pytest.raises(InvalidOption, match=r"^cap must be at most 1:00:00"):
        Exponential(cap=3_601)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: Fixed(timedelta.max), id="a fixed delay"),
        pytest.param(lambda: Fixed(1, jitter=timedelta.max), id="a fixed delay's jitter"),
        pytest.param(lambda: Exponential(jitter=timedelta.max), id="an exponential one's jitter"),
    ],
)
def test_a_wait_that_ends_after_the_last_date_is_refused(make):
    with pytest.raises(InvalidOption):
        make()
