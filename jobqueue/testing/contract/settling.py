"""Tests of settlements: the first one of a claim wins; later ones, and those of older claims, change nothing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from jobqueue.backends.base import Backend
from jobqueue.errors import JobQueueError, LeaseLost
from jobqueue.policy.settling import completed, released
from jobqueue.records import Again, Alone, Claim, Dead, Decision, Ending, Later, Settlement, Stopped
from jobqueue.states import JobStatus
from jobqueue.testing.clock import NOON, VirtualClock
from jobqueue.testing.contract.harness import (
    Contract,
    bury,
    draft,
    failing,
    finish,
    job,
    put,
    put_all,
    request,
    settle,
    sweep,
    take,
    take_one,
)

#: Every settlement that a late holder may try.
VERBS: list[Callable[[Claim], Settlement]] = [
    lambda claim: completed(claim, '"stale"'),
    failing,
    lambda claim: failing(claim, Later(timedelta(seconds=1)), Ending.SNOOZED),
    lambda claim: failing(claim, Dead("stale")),
    lambda claim: failing(claim, Alone(), Ending.CRASHED),
    lambda claim: failing(claim, Stopped("stale"), Ending.CANCELLED),
    released,
]


class SettleContract(Contract):
    """Tests of how an attempt ends."""

    def test_completion_keeps_the_result_and_gives_the_lease_back(self, backend: Backend, clock: VirtualClock) -> None:
        put(backend)
        claim = take_one(backend)
        clock.advance(3)
        assert finish(backend, claim, '{"width": 800, "ümlaut": [1, null]}')
        row = job(backend, claim.id)
        assert (row.status, row.result) == (JobStatus.COMPLETED, {"width": 800, "ümlaut": [1, None]})
        assert (row.completed_at, row.lease_owner, row.lease_until) == (NOON + timedelta(seconds=3), None, None)
        assert (row.completed_by, row.history) == (claim.owner, ())

    def test_settling_and_claiming_go_together(self, backend: Backend) -> None:
        put_all(backend, draft(), draft(), draft())
        first = take(backend, 2)
        cycle = backend.cycle("me", [completed(claim) for claim in first], request(2))
        assert (cycle.refused, len(cycle.claims)) == ((), 1)
        assert {job(backend, claim.id).status for claim in first} == {JobStatus.COMPLETED}

    def test_a_settlement_can_replace_the_context_for_the_next_attempt(self, backend: Backend) -> None:
        put_all(backend, draft(context='{"language": "de"}'), draft(context='{"language": "fr"}'))
        first, second = take(backend)
        given = failing(first)._replace(context='{"language": "de", "last_attempt": "00-ü"}')
        backend.cycle("me", [given, failing(second)])
        assert job(backend, first.id).context == {"language": "de", "last_attempt": "00-ü"}
        assert job(backend, second.id).context == {"language": "fr"}
        assert [one.claim for one in backend.cycle("me", [given._replace(context="{}")]).refused] == [given.claim]
        assert job(backend, first.id).context == {"language": "de", "last_attempt": "00-ü"}

    @pytest.mark.parametrize(
        ("decision", "status", "attempts", "crashes", "due"),
        [
            pytest.param(Again(timedelta(seconds=10)), "queued", 1, 0, 10, id="a retry waits and has used its attempt"),
            pytest.param(Later(timedelta(seconds=20)), "queued", 0, 0, 20, id="a snooze waits and is free"),
            pytest.param(Alone(), "queued", 0, 1, 0, id="quarantine is free and remembered"),
            pytest.param(Dead("discarded"), "dead_letter", 1, 0, 0, id="what is given up is a dead letter"),
            pytest.param(Stopped("cancelled"), "failed", 1, 0, 0, id="what is stopped has failed"),
        ],
    )
    def test_an_ending(
        self, backend: Backend, decision: Decision, status: str, attempts: int, crashes: int, due: int
    ) -> None:
        put(backend)
        claim = take_one(backend)
        assert settle(backend, failing(claim, decision)) == ()
        row = job(backend, claim.id)
        assert (row.status, row.attempts, row.crash_count, row.fence) == (status, attempts, crashes, 1)
        assert row.scheduled_at == NOON + timedelta(seconds=due)
        assert (row.lease_owner, row.lease_until, row.error) == (None, None, "disk on fire")
        assert (row.end_reason, row.completed_at) == (
            (None, None) if status == "queued" else (getattr(decision, "reason", None), NOON)
        )

    def test_a_released_job_keeps_its_place_and_its_attempts(self, backend: Backend, clock: VirtualClock) -> None:
        first, _second = put_all(backend, draft(), draft())
        clock.advance(60)
        claim = take_one(backend)
        assert settle(backend, released(claim)) == ()
        assert (job(backend, first).attempts, job(backend, first).scheduled_at) == (0, NOON)
        assert take_one(backend).id == first

    def test_every_attempt_that_did_not_succeed_is_remembered(self, backend: Backend, clock: VirtualClock) -> None:
        put(backend, max_retries=2)
        first = take_one(backend)
        assert settle(backend, released(first, "shutting down")) == ()
        second = take_one(backend, owner="me")
        clock.advance(2)
        assert settle(backend, failing(second)) == ()
        clock.advance(10)
        assert finish(backend, take_one(backend))
        past = job(backend, first.id).history
        assert [(one.fence, one.attempt, one.ending) for one in past] == [(1, 1, "released"), (2, 1, "failed")]
        failed = past[1]
        assert (failed.owner, failed.error_class, failed.message) == ("me", "OSError", "disk on fire")
        assert (failed.duration, failed.ended_at) == (timedelta(seconds=2), NOON + timedelta(seconds=2))

    def test_the_first_settlement_wins(self, backend: Backend) -> None:
        put(backend)
        claim = take_one(backend)
        assert finish(backend, claim, '"first"')
        assert settle(backend, completed(claim, '"second"')) == (completed(claim, '"second"'),)
        assert not finish(backend, claim)
        assert job(backend, claim.id).result == "first"

    def test_of_two_settlements_offered_at_once_the_first_wins(self, backend: Backend) -> None:
        put(backend)
        claim = take_one(backend)
        late = completed(claim, '"second"')
        assert settle(backend, completed(claim, '"first"'), late) == (late,)
        assert job(backend, claim.id).result == "first"

    def test_refused_settlements_do_not_hinder_the_others(self, backend: Backend) -> None:
        put_all(backend, *(draft() for _ in range(6)))
        claims = take(backend)
        stale = [claim._replace(fence=9) for claim in claims[:2]] + [claims[2]._replace(owner="you")]
        offers = [completed(claim) for claim in (*claims, *stale)] + [failing(stale[0])]
        refused = settle(backend, *offers)
        assert set(refused) == set(offers[6:])
        assert {job(backend, claim.id).status for claim in claims} == {JobStatus.COMPLETED}

    @pytest.mark.parametrize("verb", VERBS)
    @pytest.mark.parametrize("meanwhile", ["swept", "running", "run", "retried", "cancelled", "dead", "purged"])
    def test_a_holder_who_comes_too_late_changes_nothing(
        self, backend: Backend, clock: VirtualClock, verb: Callable[[Claim], Settlement], meanwhile: str
    ) -> None:
        put(backend, max_retries=5)
        claim = take_one(backend)
        _let_it_happen(backend, clock, claim, meanwhile)
        before = backend.jobs.get(claim.id)
        assert settle(backend, verb(claim)) == (verb(claim),)
        assert backend.extend([claim], timedelta(seconds=60)).lost == (claim,)
        with pytest.raises(LeaseLost), backend.atomic():
            backend.settle_in_transaction(verb(claim))
        assert backend.jobs.get(claim.id) == before

    def test_a_foreign_claim_that_raises_no_fence_is_told_by_its_owner(self, backend: Backend) -> None:
        put(backend)
        claim = take_one(backend, owner="them")
        stranger = claim._replace(owner="me")
        assert not finish(backend, stranger)
        assert finish(backend, claim)

    def test_settling_in_the_handlers_transaction_commits_with_it(self, backend: Backend) -> None:
        put(backend)
        claim = take_one(backend)
        with backend.atomic():
            other = put(backend, "greet")
            backend.settle_in_transaction(completed(claim))
        assert job(backend, claim.id).status is JobStatus.COMPLETED
        assert job(backend, other).status is JobStatus.QUEUED

    def test_a_lost_lease_rolls_the_handlers_work_back(self, backend: Backend, clock: VirtualClock) -> None:
        put(backend)
        claim = take_one(backend)
        clock.advance(61)
        sweep(backend, clock)
        with pytest.raises(LeaseLost, match=claim.id), backend.atomic():
            other = put(backend, "greet")
            backend.settle_in_transaction(completed(claim))
        assert backend.jobs.get(other) is None

    def test_settling_in_a_transaction_needs_one(self, backend: Backend) -> None:
        put(backend)
        with pytest.raises(JobQueueError, match="transaction"):
            backend.settle_in_transaction(completed(take_one(backend)))


def _let_it_happen(backend: Backend, clock: VirtualClock, claim: Claim, meanwhile: str) -> None:
    """Take the job from its holder in one of the possible ways."""
    if meanwhile == "cancelled":
        backend.operator.cancel([claim.id])
    if meanwhile == "dead":
        bury(backend, claim)
        return
    clock.advance(61)
    assert len(sweep(backend, clock).ended) == 1
    if meanwhile == "purged":
        assert backend.operator.purge([claim.id]).done == (claim.id,)
    if meanwhile in ("running", "run", "retried"):
        newer = take_one(backend, owner="me")
        if meanwhile == "run":
            assert finish(backend, newer, '"true"')
        if meanwhile == "retried":
            bury(backend, newer)
            assert backend.operator.retry([claim.id]).done == (claim.id,)
