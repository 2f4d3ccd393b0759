"""Tests of the options of ``@job(...)``: validated at once, with errors that name the option."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobqueue.errors import InvalidHandler, InvalidOption
from jobqueue.handlers.job_options import aliases_of, lease_of, options_of, policy_of
from jobqueue.handlers.options import OPTION_NAMES, Options
from jobqueue.policy.leases import LONGEST_LEASE, SHORTEST_LEASE
from jobqueue.policy.retry import Exponential, Fixed

OF_ONE_JOB = {"scheduled_at", "expires_at", "idempotency_key", "unique_key", "tenant", "workspace"}
OF_ONE_JOB |= {"debounce", "max_wait", "replace_payload", "throttle"}


def _wait(attempt, rng):
    return timedelta(seconds=attempt)


class Waiting:
    def __call__(self, attempt, rng):
        return timedelta(0)


def test_nothing_declared_is_the_default():
    assert options_of({}) == Options()


def test_what_is_declared_is_every_jobs_default():
    declared = {"queue": "images", "priority": 3, "max_retries": 5, "timeout": 30, "delay": 2, "parallel": True}
    assert options_of(declared) == Options(**declared)
    assert set(declared) == OPTION_NAMES - OF_ONE_JOB


@pytest.mark.parametrize("name", sorted(OF_ONE_JOB))
def test_what_names_one_job_is_no_default(name):
    with pytest.raises(InvalidHandler, match=rf"no option '{name}': it is an option of single jobs\. Pass it to using"):
        options_of({name: None})


@pytest.mark.parametrize("name", ["prioritty", "retries", "", "Queue"])
def test_an_unknown_option_is_told_with_those_there_are(name):
    with pytest.raises(InvalidHandler, match=rf"@job has no option '{name}'\. .*The options are .*priority"):
        options_of({name: 1})


@pytest.mark.parametrize(("name", "value"), [("priority", 11), ("max_retries", 0), ("queue", "a b"), ("timeout", -1)])
def test_a_declared_value_out_of_bounds_is_told_by_name(name, value):
    with pytest.raises(InvalidOption, match=f"^{name} "):
        options_of({name: value})


# How failures are treated


@pytest.mark.parametrize("retry", [Exponential(), Fixed(7), _wait, lambda attempt, rng: timedelta(0), Waiting()])
def test_a_delay_is_a_policy_or_a_function_of_ones_own(retry):
    assert policy_of(retry, (), ()).delay is retry


@pytest.mark.parametrize("retry", [None, 7, "Exponential", Exponential, Fixed, timedelta(1), (1, 2), True])
def test_what_cannot_say_a_delay_is_refused(retry):
    with pytest.raises(InvalidHandler, match=r"^@job\(retry=\.\.\.\) takes Exponential, Fixed"):
        policy_of(retry, (), ())


@pytest.mark.parametrize("option", ["retry_on", "discard_on"])
@pytest.mark.parametrize(
    ("given", "read"),
    [
        ((), ()),
        ([], ()),
        (OSError, (OSError,)),
        ([OSError, SystemExit], (OSError, SystemExit)),
        ((OSError, ValueError), (OSError, ValueError)),
    ],
)
def test_exceptions_are_one_or_several(option, given, read):
    values = {"retry_on": (), "discard_on": (), option: given}
    assert getattr(policy_of(Exponential(), **values), option) == read


@pytest.mark.parametrize("option", ["retry_on", "discard_on"])
@pytest.mark.parametrize(
    "given", [None, "OSError", 7, OSError(), int, ["OSError"], (OSError, None), [(OSError,)], {OSError}]
)
def test_what_is_no_exception_is_told_when_the_module_is_imported(option, given):
    values = {"retry_on": (), "discard_on": (), option: given}
    with pytest.raises(InvalidHandler, match=rf"^@job\({option}=\.\.\.\) takes exception classes, not "):
        policy_of(Exponential(), **values)


# Former names


@pytest.mark.parametrize("given", [["a", "b"], ("a", "b"), iter(["a", "b"])])
def test_former_names_come_as_any_list(given):
    assert aliases_of(given) == ("a", "b")


def test_one_former_name_is_a_list_of_one():
    with pytest.raises(InvalidHandler, match=r"takes a list of names, not the string 'greet'"):
        aliases_of("greet")


# Leases


def test_no_lease_is_the_workers_own():
    assert lease_of(None) is None


@given(seconds=st.floats(2, 3_600))
def test_a_lease_between_its_bounds_is_taken(seconds):
    assert lease_of(seconds) == timedelta(seconds=seconds)


@given(
    seconds=st.floats(0, SHORTEST_LEASE.total_seconds() - 1e-3)
    | st.floats(LONGEST_LEASE.total_seconds() + 1e-3, timedelta(days=3_000).total_seconds())
)
def test_a_lease_out_of_its_bounds_is_refused(seconds):
    with pytest.raises(InvalidOption, match=r"^lease must be from 0:00:02 to 1:00:00, got "):
        lease_of(seconds)


@pytest.mark.parametrize("bound", [SHORTEST_LEASE, LONGEST_LEASE])
def test_the_bounds_are_leases(bound):
    assert lease_of(bound) == bound
    assert lease_of(bound.total_seconds()) == bound


@pytest.mark.parametrize("given", ["60", True, -1, float("nan"), float("inf"), object()])
def test_what_is_no_length_of_time_is_no_lease(given):
    with pytest.raises(InvalidOption, match=r"^lease "):
        lease_of(given)
