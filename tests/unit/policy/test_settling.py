"""Tests of settlements made from a claim and a decision."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobqueue.policy.settling import completed, released, settled
from jobqueue.records import Again, Alone, Claim, Dead, Ending, Failure, Later, OverdueLease, Stopped
from jobqueue.states import Move
from jobqueue.testing.clock import NOON

CLAIM = Claim(
    id="01J",
    type="resize",
    queue="default",
    priority=5,
    payload="{}",
    payload_version=1,
    attempt=1,
    max_retries=3,
    fence=4,
    scheduled_at=NOON,
    created_at=NOON,
    expires_at=None,
    timeout=None,
    tenant=None,
    workspace=None,
    parent_id=None,
    crash_count=0,
    context=None,
    owner="host:1:nonce",
)
FAILURE = Failure.of(Ending.FAILED, message="disk on fire")
MINUTE = timedelta(minutes=1)


def test_a_completion_carries_the_claim_and_the_result():
    settlement = completed(CLAIM, '{"width": 800}')
    assert (settlement.id, settlement.fence, settlement.owner) == ("01J", 4, "host:1:nonce")
    assert (settlement.move, settlement.result, settlement.failure) == (Move.COMPLETE, '{"width": 800}', None)


def test_a_release_leaves_the_job_its_place_and_a_row_of_history():
    settlement = released(CLAIM, "shutdown")
    assert (settlement.move, settlement.delay) == (Move.RELEASE, None)
    assert (settlement.failure.ending, settlement.failure.message) == (Ending.RELEASED, "shutdown")


@pytest.mark.parametrize(
    ("decision", "move", "delay", "reason"),
    [
        (Again(MINUTE), Move.RETRY, MINUTE, None),
        (Later(MINUTE), Move.SNOOZE, MINUTE, None),
        (Alone(), Move.QUARANTINE, None, None),
        (Dead("attempts used up"), Move.BURY, None, "attempts used up"),
        (Stopped("cancelled"), Move.CANCEL, None, "cancelled"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_decision_has_its_move(decision, move, delay, reason):
    settlement = settled(CLAIM, decision, FAILURE)
    assert (settlement.move, settlement.delay, settlement.end_reason) == (move, delay, reason)
    assert (settlement.claim, settlement.owner, settlement.failure) == (("01J", 4), "host:1:nonce", FAILURE)
    assert settlement.result is None


def test_a_lease_that_ran_out_is_settled_for_the_owner_who_held_it():
    overdue = OverdueLease(
        "01J", "resize", 4, "host:1:nonce", 1, max_retries=3, crash_count=0, company=0, queue="images"
    )
    settlement = settled(overdue, Again(timedelta(0)), FAILURE)
    assert (settlement.claim, settlement.owner) == (("01J", 4), "host:1:nonce")
