"""Tests of calls that repeat with the same key: debounced and throttled jobs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from jobqueue.backends.base import Backend
from jobqueue.errors import IdempotencyMismatch
from jobqueue.policy.settling import completed
from jobqueue.records import Admission, Draft, DraftReceipt, Filter
from jobqueue.states import JobStatus
from jobqueue.testing.clock import NOON, VirtualClock
from jobqueue.testing.contract.harness import (
    Contract,
    draft,
    failing,
    finish,
    job,
    overlapping,
    put,
    settle,
    take,
    take_one,
    together,
)

TEN = timedelta(seconds=10)
MINUTE = timedelta(minutes=1)


def debounced(**values: Any) -> Draft:
    """Return a draft that each further one moves by ten seconds, for at most a minute."""
    return draft(**{"unique_key": "page 7", "debounce": TEN, "max_wait": MINUTE, **values})


def throttled(**values: Any) -> Draft:
    """Return a draft that stands for others for a minute."""
    return draft(**{"unique_key": "page 7", "throttle": MINUTE, **values})


def one(backend: Backend, given: Draft) -> DraftReceipt:
    """Enqueue one draft and return its receipt."""
    (receipt,) = backend.enqueue([given])
    return receipt


def number(backend: Backend) -> int:
    """Return how many jobs there are."""
    return backend.jobs.count(Filter())


class RepeatContract(Contract):
    """Tests of debounced and throttled jobs."""

    # Debounced jobs

    def test_each_call_moves_a_debounced_job_up_to_its_longest_wait(
        self, backend: Backend, clock: VirtualClock
    ) -> None:
        first = one(backend, debounced())
        assert first.created
        assert job(backend, first.id).scheduled_at == NOON + TEN
        moments = []
        for _ in range(12):
            clock.advance(timedelta(seconds=6))
            again = one(backend, debounced())
            assert (again.id, again.outcome) == (first.id, Admission.EXISTING)
            moments.append(job(backend, first.id).scheduled_at - NOON)
        assert moments[:3] == [timedelta(seconds=16), timedelta(seconds=22), timedelta(seconds=28)]
        assert set(moments[8:]) == {MINUTE}
        assert number(backend) == 1

    def test_a_debounced_job_keeps_its_payload_or_takes_the_newest(self, backend: Backend) -> None:
        newest = {"payload": '{"image_id": 8}', "payload_version": 2, "context": '{"language": "de"}'}
        newest["concurrency_key"] = '{"image_id":"8"}'
        first = one(backend, debounced())
        kept = one(backend, debounced(**newest))
        assert kept.payload_differs
        assert (job(backend, first.id).payload, job(backend, first.id).concurrency_key) == ({"image_id": 7}, None)
        replaced = one(backend, debounced(**newest, replace_payload=True))
        assert (replaced.id, replaced.payload_differs) == (first.id, False)
        stored = job(backend, first.id)
        assert (stored.payload, stored.payload_version, stored.context) == ({"image_id": 8}, 2, {"language": "de"})
        assert stored.concurrency_key == newest["concurrency_key"]

    def test_the_newest_payload_decides_the_lane(self, backend: Backend) -> None:
        first, then = one(backend, debounced(lane="7")), one(backend, draft(lane="8"))
        one(backend, debounced(lane="8"))
        assert job(backend, first.id).lane == "7"
        place = job(backend, first.id).lane_position
        one(backend, debounced(lane="7", replace_payload=True))
        assert job(backend, first.id).lane_position == place
        one(backend, debounced(lane="8", replace_payload=True))
        stored, before = job(backend, first.id), job(backend, then.id)
        assert stored.lane == "8"
        assert (stored.lane_position or 0) > (before.lane_position or 0)
        one(backend, debounced(lane="9", queue="mail", replace_payload=True))
        assert (job(backend, first.id).lane, job(backend, first.id).lane_position) == (None, None)

    def test_a_running_job_is_not_moved_and_a_new_one_follows_it(self, backend: Backend, clock: VirtualClock) -> None:
        first = one(backend, debounced())
        clock.advance(TEN)
        claim = take_one(backend)
        second = one(backend, debounced())
        assert second.created
        assert one(backend, debounced()).id == second.id
        assert job(backend, first.id).status is JobStatus.IN_PROGRESS
        assert job(backend, second.id).scheduled_at == NOON + 2 * TEN
        assert finish(backend, claim)
        clock.advance(TEN)
        assert take_one(backend).id == second.id

    def test_a_retry_that_waits_is_never_pulled_forward(self, backend: Backend, clock: VirtualClock) -> None:
        first = one(backend, debounced())
        clock.advance(5 * MINUTE)
        settle(backend, failing(take_one(backend)))
        due = job(backend, first.id).scheduled_at
        assert one(backend, debounced()).id == first.id
        assert job(backend, first.id).scheduled_at == due

    def test_after_a_debounced_job_has_ended_a_new_one_is_stored(self, backend: Backend, clock: VirtualClock) -> None:
        first = one(backend, debounced())
        clock.advance(TEN)
        finish(backend, take_one(backend))
        assert one(backend, debounced()).id != first.id

    @pytest.mark.parametrize("is_running", [False, True])
    def test_a_debounced_key_of_another_type_is_an_error(self, backend: Backend, is_running: bool) -> None:
        first = put(backend, "greet", unique_key="page 7")
        if is_running:
            take_one(backend)
        before = job(backend, first)
        with pytest.raises(IdempotencyMismatch):
            backend.enqueue([debounced()])
        assert job(backend, first) == before

    def test_repeats_among_many_drafts_are_answered_in_order(self, backend: Backend) -> None:
        drafts = [
            draft(),
            debounced(),
            throttled(unique_key="mail"),
            debounced(),
            throttled(unique_key="mail"),
            draft(),
        ]
        receipts = backend.enqueue(drafts)
        assert [receipt.created for receipt in receipts] == [True, True, True, False, False, True]
        assert (receipts[3].id, receipts[4].id) == (receipts[1].id, receipts[2].id)
        assert number(backend) == 4

    def test_follow_up_jobs_may_be_debounced_and_throttled(self, backend: Backend) -> None:
        for _ in range(2):
            put(backend, "greet")
            (claim,) = take(backend, types=frozenset({"greet"}))
            children = (debounced(), throttled(unique_key="mail"))
            assert settle(backend, completed(claim, None)._replace(children=children)) == ()
        assert number(backend) == 4

    # Throttled jobs

    def test_the_first_throttled_job_stands_for_the_others(self, backend: Backend, clock: VirtualClock) -> None:
        first = one(backend, throttled())
        assert job(backend, first.id).scheduled_at == NOON
        finish(backend, take_one(backend))
        clock.advance(timedelta(seconds=59))
        again = one(backend, throttled(payload='{"image_id": 8}'))
        assert (again.id, again.outcome, again.payload_differs) == (first.id, Admission.EXISTING, True)
        clock.advance(timedelta(seconds=2))
        assert one(backend, throttled()).created
        assert number(backend) == 2

    def test_a_throttled_job_that_waits_for_longer_still_has_its_key(
        self, backend: Backend, clock: VirtualClock
    ) -> None:
        first = one(backend, throttled())
        clock.advance(2 * MINUTE)
        assert one(backend, throttled()).id == first.id
        finish(backend, take_one(backend))
        assert one(backend, throttled()).id == first.id
        clock.advance(2 * MINUTE)
        assert one(backend, throttled()).created

    def test_a_throttled_job_that_was_purged_still_stands(self, backend: Backend) -> None:
        first = one(backend, throttled())
        finish(backend, take_one(backend))
        backend.operator.purge([first.id])
        assert one(backend, throttled()).id == first.id
        assert number(backend) == 0

    def test_a_throttled_key_of_another_type_is_an_error(self, backend: Backend) -> None:
        one(backend, throttled(type="greet"))
        finish(backend, take_one(backend))
        with pytest.raises(IdempotencyMismatch):
            one(backend, throttled())

    def test_a_rolled_back_throttled_job_stands_for_none(self, backend: Backend) -> None:
        with pytest.raises(RuntimeError), backend.atomic():
            one(backend, throttled())
            raise RuntimeError
        assert one(backend, throttled()).created

    def test_throttles_that_are_over_are_forgotten(self, backend: Backend, clock: VirtualClock) -> None:
        kept = one(backend, throttled(unique_key="kept", throttle=10 * MINUTE))
        one(backend, throttled())
        clock.advance(2 * MINUTE)
        backend.forget_throttles()
        assert one(backend, throttled(unique_key="kept")).id == kept.id

    # Races

    def test_race_debounced_debounced(self, backend: Backend) -> None:
        receipts = together(*[lambda: [one(backend, debounced()) for _ in range(5)]] * 4)
        assert len({receipt.id for several in receipts for receipt in several}) == 1
        assert sum(receipt.created for several in receipts for receipt in several) == 1
        assert number(backend) == 1

    def test_race_debounced_claim(self, backend: Backend, clock: VirtualClock) -> None:
        first = one(backend, debounced())
        clock.advance(TEN)
        claims, receipt = overlapping(backend, lambda: take(backend), lambda: one(backend, debounced()))
        assert [claim.id for claim in claims] == [first.id]
        assert receipt.created
        assert job(backend, first.id).status is JobStatus.IN_PROGRESS

    def test_race_claim_debounced(self, backend: Backend, clock: VirtualClock) -> None:
        first = one(backend, debounced())
        clock.advance(TEN)
        receipt, claims = overlapping(backend, lambda: one(backend, debounced()), lambda: take(backend))
        assert receipt.id == first.id
        assert claims == []

    def test_race_debounced_while_running(self, backend: Backend, clock: VirtualClock) -> None:
        one(backend, debounced())
        clock.advance(TEN)
        take_one(backend)
        receipts = together(*[lambda: one(backend, debounced())] * 4)
        assert len({receipt.id for receipt in receipts}) == 1
        assert number(backend) == 2

    def test_race_throttled_throttled(self, backend: Backend) -> None:
        def call() -> list[DraftReceipt]:
            return [one(backend, throttled()) for _ in range(5)]

        receipts = [receipt for several in together(*[call] * 4) for receipt in several]
        assert sum(receipt.created for receipt in receipts) == 1
        assert len({receipt.id for receipt in receipts}) == 1

    def test_race_ended_throttled_throttled(self, backend: Backend) -> None:
        def run() -> DraftReceipt:
            receipt = one(backend, throttled())
            assert finish(backend, take_one(backend))
            return receipt

        first, second = overlapping(backend, run, lambda: one(backend, throttled()))
        assert (first.created, second.created) == (True, False)
        assert second.id == first.id
