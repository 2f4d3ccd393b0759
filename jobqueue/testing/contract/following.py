"""Tests of follow-up jobs, which are stored with their parent's completion and with nothing else."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from jobqueue.backends.base import Backend
from jobqueue.errors import LeaseLost
from jobqueue.policy.settling import completed, released
from jobqueue.records import Again, Alone, Claim, Dead, Draft, Ending, Later, Settlement, Stopped
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
    put_all,
    receipts,
    request,
    settle,
    sweep,
    take,
    take_one,
)

#: Every end of an attempt except completion.
OTHER_ENDINGS: dict[str, Callable[[Claim], Settlement]] = {
    "retried": lambda claim: failing(claim, Again(timedelta(seconds=1))),
    "snoozed": lambda claim: failing(claim, Later(timedelta(seconds=1)), Ending.SNOOZED),
    "given up": lambda claim: failing(claim, Dead("given up")),
    "quarantined": lambda claim: failing(claim, Alone(), Ending.CRASHED),
    "cancelled": lambda claim: failing(claim, Stopped("cancelled"), Ending.CANCELLED),
    "released": released,
}


def completed_with(claim: Claim, *children: Draft) -> Settlement:
    """Store a completion with follow-up jobs."""
    return completed(claim)._replace(children=children)


class FollowContract(Contract):
    """Tests of follow-up jobs."""

    def test_follow_up_jobs_are_stored_with_the_completion(self, backend: Backend) -> None:
        put(backend, tenant="acme")
        claim = take_one(backend)
        first = draft("greet", queue="mail", priority=2, parent_id=claim.id, tenant="acme", workspace="north")
        second = draft("rare", delay=timedelta(seconds=30), parent_id=claim.id, tenant="acme")
        cycle = backend.cycle("me", [completed_with(claim, first, second)])
        assert cycle.refused == ()
        assert [(one.draft, one.receipt and one.receipt.created) for one in cycle.followed] == [
            (first, True),
            (second, True),
        ]
        assert job(backend, claim.id).status is JobStatus.COMPLETED
        row, later = job(backend, first.id), job(backend, second.id)
        assert (row.status, row.type, row.queue, row.priority) == (JobStatus.QUEUED, "greet", "mail", 2)
        assert (row.parent_id, row.tenant, row.workspace) == (claim.id, "acme", "north")
        assert (later.parent_id, later.tenant, later.workspace) == (claim.id, "acme", None)
        assert later.scheduled_at == NOON + timedelta(seconds=30)

    def test_a_follow_up_job_knows_its_family_when_it_runs(self, backend: Backend) -> None:
        put(backend)
        claim = take_one(backend)
        settle(backend, completed_with(claim, draft(parent_id=claim.id, tenant="acme", workspace="north")))
        child = take_one(backend)
        assert (child.parent_id, child.tenant, child.workspace) == (claim.id, "acme", "north")

    def test_completing_with_follow_up_jobs_and_claiming_go_together(self, backend: Backend) -> None:
        put_all(backend, draft(), draft(), draft())
        first, second = take(backend, 2)
        offers = [completed_with(first, draft("rare")), completed(second)]
        cycle = backend.cycle("me", offers, request(1))
        assert (cycle.refused, len(cycle.claims), len(cycle.followed)) == ((), 1, 1)
        assert {job(backend, claim.id).status for claim in (first, second)} == {JobStatus.COMPLETED}

    def test_a_completion_without_follow_up_jobs_tells_of_none(self, backend: Backend) -> None:
        put(backend)
        assert backend.cycle("me", [completed(take_one(backend))], request()).followed == ()

    def test_a_refused_completion_drops_its_follow_up_jobs(self, backend: Backend, clock: VirtualClock) -> None:
        put_all(backend, draft(), draft())
        held, lost = take(backend)
        clock.advance(30)
        backend.extend([held], timedelta(seconds=60))
        clock.advance(31)
        assert len(sweep(backend, clock).ended) == 1
        dropped, kept = draft("greet", parent_id=lost.id), draft("greet", parent_id=held.id)
        late = completed_with(lost, dropped)
        cycle = backend.cycle("me", [late, completed_with(held, kept)])
        assert cycle.refused == (late,)
        assert [one.draft for one in cycle.followed] == [kept]
        assert backend.jobs.get(dropped.id) is None
        assert job(backend, kept.id).parent_id == held.id

    def test_a_second_completion_drops_its_follow_up_jobs(self, backend: Backend) -> None:
        put(backend)
        claim = take_one(backend)
        once, twice, thrice = draft("greet"), draft("greet"), draft("greet")
        second = completed_with(claim, twice)
        cycle = backend.cycle("me", [completed_with(claim, once), second])
        assert (cycle.refused, [one.draft for one in cycle.followed]) == ((second,), [once])
        assert settle(backend, completed_with(claim, thrice)) == (completed_with(claim, thrice),)
        assert backend.jobs.get(once.id) is not None
        assert (backend.jobs.get(twice.id), backend.jobs.get(thrice.id)) == (None, None)

    @pytest.mark.parametrize("ending", OTHER_ENDINGS)
    def test_an_attempt_that_did_not_succeed_has_no_follow_up_jobs(self, backend: Backend, ending: str) -> None:
        put_all(backend, draft(), draft())
        unlucky, lucky = take(backend)
        dropped, kept = draft("greet"), draft("greet")
        offers = [OTHER_ENDINGS[ending](unlucky)._replace(children=(dropped,)), completed_with(lucky, kept)]
        cycle = backend.cycle("me", offers)
        assert (cycle.refused, [one.draft for one in cycle.followed]) == ((), [kept])
        assert backend.jobs.get(dropped.id) is None

    @pytest.mark.parametrize("column", ["idempotency_key", "unique_key"])
    def test_a_key_that_is_taken_gives_the_job_that_has_it(self, backend: Backend, column: str) -> None:
        older = put(backend, "greet", scheduled_at=NOON + timedelta(days=1), **{column: "seven"})
        put(backend)
        claim = take_one(backend)
        same = draft("greet", **{column: "seven"})
        other = draft("greet", payload='{"image_id": 8}', **{column: "seven"})
        before, after = draft("rare"), draft("rare")
        cycle = backend.cycle("me", [completed_with(claim, before, same, other, after)])
        assert cycle.refused == ()
        found = [one.receipt for one in cycle.followed if one.receipt]
        assert [one.id for one in found] == [before.id, older, older, after.id]
        assert [one.created for one in found] == [True, False, False, True]
        assert [one.payload_differs for one in found] == [False, False, True, False]
        assert (backend.jobs.get(same.id), backend.jobs.get(other.id)) == (None, None)
        assert job(backend, older).parent_id is None

    @pytest.mark.parametrize("column", ["idempotency_key", "unique_key"])
    def test_two_follow_up_jobs_with_one_key_are_one(self, backend: Backend, column: str) -> None:
        put_all(backend, draft(), draft())
        first, second = take(backend)
        mine, yours = draft("greet", **{column: "seven"}), draft("greet", **{column: "seven"})
        cycle = backend.cycle("me", [completed_with(first, mine), completed_with(second, yours)])
        assert cycle.refused == ()
        made = {one.receipt.id for one in cycle.followed if one.receipt}
        assert len(cycle.followed) == 2
        assert len(made) == 1
        assert len(take(backend)) == 1

    @pytest.mark.parametrize("column", ["idempotency_key", "unique_key"])
    def test_a_key_of_another_type_is_refused_and_harms_nothing_else(self, backend: Backend, column: str) -> None:
        older = put(backend, "rare", scheduled_at=NOON + timedelta(days=1), **{column: "seven"})
        put_all(backend, draft(), draft())
        first, second = take(backend)
        clash, fine, others = draft("greet", **{column: "seven"}), draft("greet"), draft("greet")
        cycle = backend.cycle("me", [completed_with(first, clash, fine), completed_with(second, others)])
        assert cycle.refused == ()
        by_draft = {one.draft: one for one in cycle.followed}
        assert by_draft[clash].receipt is None
        assert older in by_draft[clash].refusal
        assert "'seven'" in by_draft[clash].refusal
        assert [by_draft[one].receipt is not None for one in (fine, others)] == [True, True]
        assert backend.jobs.get(clash.id) is None
        assert {job(backend, one.id).status for one in (fine, others)} == {JobStatus.QUEUED}
        assert {job(backend, claim.id).status for claim in (first, second)} == {JobStatus.COMPLETED}

    def test_follow_up_jobs_commit_with_the_handlers_transaction(self, backend: Backend) -> None:
        older = put(backend, "rare", scheduled_at=NOON + timedelta(days=1), idempotency_key="seven")
        put(backend)
        claim = take_one(backend)
        child, clash = draft("greet", parent_id=claim.id), draft("greet", idempotency_key="seven")
        with backend.atomic_attempt():
            followed = backend.settle_in_transaction(completed_with(claim, child, clash))
        assert [(one.draft, one.receipt is not None) for one in followed] == [(child, True), (clash, False)]
        assert older in followed[1].refusal
        assert job(backend, claim.id).status is JobStatus.COMPLETED
        assert job(backend, child.id).parent_id == claim.id

    def test_follow_up_jobs_roll_back_with_the_handlers_transaction(self, backend: Backend) -> None:
        put(backend)
        claim = take_one(backend)
        child = draft("greet", parent_id=claim.id)
        with pytest.raises(ZeroDivisionError), backend.atomic_attempt():
            backend.settle_in_transaction(completed_with(claim, child))
            raise ZeroDivisionError
        assert backend.jobs.get(child.id) is None
        assert job(backend, claim.id).status is JobStatus.IN_PROGRESS
        assert finish(backend, claim)

    def test_a_lost_lease_drops_the_follow_up_jobs_of_an_atomic_handler(
        self, backend: Backend, clock: VirtualClock
    ) -> None:
        put(backend)
        claim = take_one(backend)
        clock.advance(61)
        assert len(sweep(backend, clock).ended) == 1
        child = draft("greet")
        with pytest.raises(LeaseLost, match=claim.id), backend.atomic_attempt():
            backend.settle_in_transaction(completed_with(claim, child))
        assert backend.jobs.get(child.id) is None

    def test_race_follow_enqueue(self, backend: Backend) -> None:
        put(backend)
        claim = take_one(backend)
        child = draft("greet", idempotency_key="seven")
        cycle, (theirs,) = overlapping(
            backend,
            lambda: backend.cycle("me", [completed_with(claim, child)]),
            lambda: receipts(backend, draft("greet", idempotency_key="seven")),
        )
        assert [one.receipt and one.receipt.created for one in cycle.followed] == [True]
        assert (theirs.created, theirs.id) == (False, child.id)
