"""Tests of the virtual clock of a queue: what happens as it moves, in which order, and how fast."""

from __future__ import annotations

from datetime import timedelta
from time import process_time

import pytest

import jobqueue
from jobqueue import Exponential, job
from jobqueue.records import ClaimRequest
from jobqueue.testing import VirtualClock, virtual_time
from jobqueue.testing.clock import NOON
from tests.kit import handlers


@pytest.fixture
def clock(rolled_back):
    with virtual_time(NOON) as clock:
        yield clock
    assert rolled_back.clock is None


@job("kit.weekly", max_retries=500, retry=Exponential(base=60, cap=3600, jitter=0))
def weekly() -> None:
    raise OSError("still on fire")


def test_lengths_have_names():
    clock = VirtualClock(NOON)
    clock.advance(hours=1, minutes=10)
    clock.advance(5)
    clock.advance(timedelta(days=1), seconds=5)
    assert clock.now() - NOON == timedelta(days=1, hours=1, minutes=10, seconds=10)
    assert clock.monotonic() == 86_400 + 3600 + 610


def test_retries_come_at_their_moments(clock):
    receipt = handlers.fail.enqueue(until=3)
    assert [report.attempt for report in clock.advance(0)] == [1]
    assert clock.advance(59) == []
    assert [report.attempt for report in clock.advance(1)] == [2]
    assert [report.result for report in clock.advance(minutes=10)] == ["done"]
    job = jobqueue.get(receipt.id)
    assert job.completed_at == NOON + timedelta(seconds=120)
    assert [one.ended_at for one in job.history] == [NOON, NOON + timedelta(seconds=60)]


def test_everything_happens_in_its_order(clock, rolled_back):
    lost = handlers.add.enqueue("lost").id
    rolled_back.cycle(
        "a dead worker", (), ClaimRequest(limit=1, types=frozenset({"kit.add"}), lease=timedelta(minutes=5))
    )
    handlers.nap.enqueue()
    late = handlers.add.using(delay=7200, expires_at=NOON + timedelta(minutes=30)).enqueue("never").id
    handlers.add.using(delay=60).enqueue("first")
    reports = clock.advance(hours=3)
    assert [(report.job_type, report.status.value) for report in reports] == [
        ("kit.nap", "queued"),
        ("kit.add", "completed"),
        ("kit.add", "completed"),
        ("kit.nap", "completed"),
    ]
    assert [report.job_id == lost for report in reports] == [False, False, True, False]
    assert jobqueue.get(lost).history[0].ending == "lease_lost"
    expired = jobqueue.get(late)
    assert (expired.status, expired.end_reason) == ("failed", "expired")
    assert NOON + timedelta(minutes=30) <= expired.completed_at < NOON + timedelta(minutes=31)
    assert clock.now() == NOON + timedelta(hours=3)


def test_errors_are_raised_if_asked_for(rolled_back):
    handlers.fail.enqueue()
    with virtual_time(errors="raise") as clock, pytest.raises(OSError, match="disk on fire"):
        clock.advance(1)


def test_a_week_of_retries_is_simulated_in_less_than_a_second(clock):
    receipts = [weekly.enqueue(), handlers.fail.enqueue()]
    began = process_time()
    reports = clock.advance(weeks=1)
    assert process_time() - began < 1.0
    assert len(reports) > 150
    assert [jobqueue.get(one.id).status for one in receipts] == ["queued", "dead_letter"]
