"""Tests of the settlement of expired leases."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobqueue.policy.leases import settle_dead, settle_overdue
from jobqueue.records import Ending, OverdueLease
from jobqueue.states import Move


def _overdue(attempt=1, max_retries=3, crash_count=0, company=0):
    return OverdueLease("01J", "resize", 4, "host:1:nonce", attempt, max_retries, crash_count, company, "images")


@pytest.mark.parametrize(
    ("overdue", "move", "delay", "reason"),
    [
        pytest.param(_overdue(), Move.RETRY, timedelta(0), None, id="alone, it goes back"),
        pytest.param(_overdue(attempt=3), Move.BURY, None, "lease lost", id="alone and used up, it is given up"),
        pytest.param(_overdue(company=2), Move.QUARANTINE, None, None, id="in company, it runs alone next"),
        pytest.param(_overdue(attempt=3, company=2), Move.QUARANTINE, None, None, id="even when used up"),
        pytest.param(_overdue(company=2, crash_count=1), Move.RETRY, timedelta(0), None, id="but only once"),
    ],
)
def test_settlement(overdue, move, delay, reason):
    settlement = settle_overdue(overdue)
    assert (settlement.move, settlement.delay, settlement.end_reason) == (move, delay, reason)


def test_the_history_names_the_owner_who_gave_no_news():
    failure = settle_overdue(_overdue()).failure
    assert failure.ending is Ending.LEASE_LOST
    assert "host:1:nonce" in failure.message


@given(st.builds(_overdue, st.integers(1, 9), st.integers(1, 9), st.integers(0, 9), st.integers(0, 9)))
def test_every_settlement_names_the_claim_that_ran_out(overdue):
    settlement = settle_overdue(overdue)
    assert (settlement.claim, settlement.owner) == (("01J", 4), "host:1:nonce")
    assert settlement.move in (Move.RETRY, Move.BURY, Move.QUARANTINE)
    assert settlement.failure is not None


@given(st.builds(_overdue, st.integers(1, 9), st.integers(1, 9), st.integers(0, 9), st.integers(0, 9)))
def test_the_jobs_of_a_dead_worker_get_what_those_of_a_silent_one_get(overdue):
    dead, silent = settle_dead(overdue), settle_overdue(overdue)
    assert (dead.claim, dead.owner, dead.move, dead.delay) == (silent.claim, silent.owner, silent.move, silent.delay)
    assert dead.end_reason == (silent.end_reason and "crashed")
    assert dead.failure.ending is Ending.CRASHED
    assert "host:1:nonce" in dead.failure.message
