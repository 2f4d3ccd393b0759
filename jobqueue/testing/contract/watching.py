"""Tests of a worker's claims: lost and cancelled ones, progress, and an atomic handler's transaction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from datetime import timedelta

import pytest

from jobqueue.backends.base import Backend
from jobqueue.policy.leases import settle_overdue
from jobqueue.policy.settling import completed
from jobqueue.records import Claim, Extension, JobRecord, Progress
from jobqueue.states import JobStatus
from jobqueue.testing.clock import NOON, VirtualClock
from jobqueue.testing.contract.harness import (
    LEASE,
    Contract,
    bury,
    draft,
    failing,
    finish,
    job,
    overlapping,
    put,
    put_all,
    settle,
    sweep,
    take,
    take_one,
)

LAST = '{"percent": 100}'


def report_of(claim: Claim, text: str = '{"percent": 50}') -> Progress:
    """Return a report that a claim's work is half done."""
    return Progress(claim.id, claim.fence, claim.owner, text)


def _swept(backend: Backend, clock: VirtualClock, claim: Claim) -> None:
    clock.advance(61)
    assert [one.id for one in sweep(backend, clock).ended] == [claim.id]


def _claimed_again(backend: Backend, clock: VirtualClock, claim: Claim) -> None:
    _swept(backend, clock, claim)
    assert take_one(backend, owner=claim.owner).fence > claim.fence


def _gone(backend: Backend, claim: Claim) -> None:
    assert finish(backend, claim)
    assert backend.operator.purge([claim.id]).done == (claim.id,)


#: The ways in which a claim ends.
LOSSES: dict[str, Callable[[Backend, VirtualClock, Claim], object]] = {
    "swept": _swept,
    "claimed again by its own worker": _claimed_again,
    "completed": lambda backend, _clock, claim: finish(backend, claim),
    "failed": lambda backend, _clock, claim: settle(backend, failing(claim)),
    "given up": lambda backend, _clock, claim: bury(backend, claim),
    "purged": lambda backend, _clock, claim: _gone(backend, claim),
}


class WatchContract(Contract):
    """Tests of how a worker watches its claims."""

    # Lost and cancelled claims

    def test_nothing_to_review_is_nothing_found(self, backend: Backend) -> None:
        assert backend.review([]) == Extension()

    def test_a_review_finds_no_fault_with_what_is_held(self, backend: Backend) -> None:
        put_all(backend, draft(), draft())
        assert backend.review(take(backend)) == Extension()

    @pytest.mark.parametrize("loss", LOSSES)
    def test_a_review_tells_what_is_lost(self, backend: Backend, clock: VirtualClock, loss: str) -> None:
        put(backend)
        lost = take_one(backend)
        put(backend, "rare")
        held = take_one(backend, types=frozenset({"rare"}), lease=timedelta(hours=1))
        LOSSES[loss](backend, clock, lost)
        assert backend.review([lost, held]) == Extension(lost=(lost,))

    @pytest.mark.parametrize("change", [{"fence": 9}, {"owner": "you"}])
    def test_a_review_takes_nobody_for_the_holder(self, backend: Backend, change: dict[str, object]) -> None:
        put(backend)
        claim = take_one(backend)
        stranger = claim._replace(**change)  # type: ignore[arg-type]
        assert backend.review([stranger]) == Extension(lost=(stranger,))
        assert backend.review([claim]) == Extension()

    def test_a_review_tells_what_an_operator_wants_stopped(self, backend: Backend) -> None:
        put_all(backend, draft(), draft(), draft())
        kept, stopped, lost = take(backend)
        backend.operator.cancel([stopped.id, lost.id])
        settle(backend, failing(lost))
        assert backend.review([kept, stopped, lost]) == Extension(lost=(lost,), cancelled=(stopped,))

    def test_a_review_writes_nothing(self, backend: Backend, clock: VirtualClock) -> None:
        put_all(backend, draft(), draft(), draft())
        claims = take(backend)
        backend.operator.cancel([claims[1].id])
        assert finish(backend, claims[2])
        before = [backend.jobs.get(claim.id) for claim in claims]
        clock.advance(20)
        backend.review(claims)
        assert [backend.jobs.get(claim.id) for claim in claims] == before

    def test_a_reviewed_lease_is_no_longer_for_it(self, backend: Backend, clock: VirtualClock) -> None:
        put(backend)
        claim = take_one(backend)
        clock.advance(59)
        assert backend.review([claim]).lost == ()
        clock.advance(2)
        assert len(sweep(backend, clock).ended) == 1
        assert backend.review([claim]).lost == (claim,)

    # Held claims

    def test_a_worker_can_read_what_it_holds(self, backend: Backend) -> None:
        put_all(backend, *(draft() for _ in range(5)))
        mine, done, failed, dead = take(backend, 4)
        theirs = take_one(backend, owner="you")
        assert finish(backend, done)
        assert settle(backend, failing(failed)) == ()
        bury(backend, dead)
        assert backend.held_by("me") == [(mine.id, mine.fence)]
        assert backend.held_by("you") == [(theirs.id, theirs.fence)]
        assert backend.held_by("nobody") == []

    def test_what_is_held_has_the_number_of_its_newest_claim(self, backend: Backend, clock: VirtualClock) -> None:
        put(backend)
        claim = take_one(backend)
        _swept(backend, clock, claim)
        assert backend.held_by("me") == []
        again = take_one(backend)
        assert backend.held_by("me") == [(claim.id, again.fence)]
        assert again.fence > claim.fence

    # Progress

    def test_progress_is_kept_for_all_to_see(self, backend: Backend, clock: VirtualClock) -> None:
        put_all(backend, draft(), draft())
        first, second = take(backend)
        clock.advance(5)
        backend.progress([report_of(first, '{"step": "ümlaut", "percent": 12.5}'), report_of(second)])
        assert job(backend, first.id).progress == {"step": "ümlaut", "percent": 12.5}
        assert job(backend, second.id).progress == {"percent": 50}
        assert job(backend, first.id).updated_at == NOON + timedelta(seconds=5)

    def test_the_last_report_stands(self, backend: Backend) -> None:
        put(backend)
        claim = take_one(backend)
        backend.progress([report_of(claim)])
        backend.progress([report_of(claim, '{"percent": 75}')])
        assert job(backend, claim.id).progress == {"percent": 75}

    def test_a_report_changes_neither_the_lease_nor_the_claim(self, backend: Backend, clock: VirtualClock) -> None:
        put(backend)
        claim = take_one(backend)
        before = job(backend, claim.id)
        clock.advance(20)
        backend.progress([report_of(claim)])
        assert _but_progress(job(backend, claim.id)) == _but_progress(before)
        assert finish(backend, claim)

    def test_a_report_outlives_the_attempt(self, backend: Backend) -> None:
        put(backend)
        claim = take_one(backend)
        backend.progress([report_of(claim, '{"percent": 100}')])
        assert finish(backend, claim)
        assert job(backend, claim.id).progress == {"percent": 100}

    def test_a_settlement_carries_the_last_report(self, backend: Backend) -> None:
        put_all(backend, draft(), draft(), draft(), draft())
        done, failed, silent, atomic = claims = take(backend)
        backend.progress([report_of(claim) for claim in claims])
        offers = [completed(done, "7"), failing(failed)]
        assert settle(backend, *(one._replace(progress=LAST) for one in offers), completed(silent)) == ()
        with backend.atomic_attempt():
            backend.settle_in_transaction(completed(atomic)._replace(progress=LAST))
        percents = [job(backend, claim.id).progress["percent"] for claim in claims]  # type: ignore[index]
        assert percents == [100, 100, 50, 100]
        assert (job(backend, done.id).result, job(backend, failed.id).status) == (7, JobStatus.QUEUED)

    def test_the_report_of_a_refused_settlement_changes_nothing(self, backend: Backend) -> None:
        put(backend)
        claim = take_one(backend)
        backend.progress([report_of(claim)])
        assert finish(backend, claim)
        late = completed(claim)._replace(progress=LAST)
        assert settle(backend, late) == (late,)
        assert job(backend, claim.id).progress == {"percent": 50}

    def test_no_reports_are_no_trouble(self, backend: Backend) -> None:
        backend.progress([])

    @pytest.mark.parametrize("loss", LOSSES)
    def test_a_report_of_a_lost_claim_changes_nothing(self, backend: Backend, clock: VirtualClock, loss: str) -> None:
        put(backend)
        claim = take_one(backend)
        put(backend, "rare")
        held = take_one(backend, types=frozenset({"rare"}), lease=timedelta(hours=1))
        LOSSES[loss](backend, clock, claim)
        before = backend.jobs.get(claim.id)
        clock.advance(5)
        backend.progress([report_of(claim), report_of(held)])
        assert backend.jobs.get(claim.id) == before
        assert job(backend, held.id).progress == {"percent": 50}

    @pytest.mark.parametrize("change", [{"fence": 9}, {"fence": 0}, {"owner": "you"}, {"id": "nosuch"}])
    def test_a_report_of_a_stranger_changes_nothing(
        self, backend: Backend, clock: VirtualClock, change: dict[str, object]
    ) -> None:
        put(backend)
        claim = take_one(backend)
        before = job(backend, claim.id)
        clock.advance(5)
        backend.progress([report_of(claim)._replace(**change)])  # type: ignore[arg-type]
        assert job(backend, claim.id) == before

    def test_race_sweep_progress(self, backend: Backend, clock: VirtualClock) -> None:
        put(backend)
        claim = take_one(backend)
        clock.advance(61)
        if backend.second_look:
            backend.sweep(settle_overdue)
            clock.advance(backend.second_look)
        swept, _ = overlapping(
            backend, lambda: backend.sweep(settle_overdue), lambda: backend.progress([report_of(claim)])
        )
        assert len(swept.ended) == 1
        assert (job(backend, claim.id).status, job(backend, claim.id).progress) == (JobStatus.QUEUED, None)

    def test_race_cancel_progress(self, backend: Backend) -> None:
        put_all(backend, draft(), draft())
        locked, free = take(backend)
        reports = [report_of(locked), report_of(free)]
        _, left = overlapping(backend, lambda: backend.operator.cancel([locked.id]), lambda: backend.progress(reports))
        assert left in ((), (reports[0],))
        assert job(backend, free.id).progress == {"percent": 50}
        assert backend.progress(left) == ()
        assert job(backend, locked.id).progress == {"percent": 50}

    # The transaction of an atomic handler

    def test_an_atomic_attempt_commits_with_the_callers_data(self, backend: Backend) -> None:
        put(backend)
        claim = take_one(backend)
        with backend.atomic_attempt():
            assert backend.in_atomic()
            other = put(backend, "greet")
            backend.settle_in_transaction(completed(claim))
        assert not backend.in_atomic()
        assert job(backend, claim.id).status is JobStatus.COMPLETED
        assert job(backend, other).status is JobStatus.QUEUED

    def test_an_atomic_attempt_rolls_back_with_the_callers_data(self, backend: Backend) -> None:
        put(backend)
        claim = take_one(backend)
        before, called = job(backend, claim.id), list[str]()
        with pytest.raises(ZeroDivisionError), backend.atomic_attempt():
            other = put(backend, "greet")
            backend.on_commit(lambda: called.append("after the commit"))
            backend.settle_in_transaction(completed(claim))
            raise ZeroDivisionError
        assert (backend.jobs.get(other), called) == (None, [])
        assert job(backend, claim.id) == before
        assert finish(backend, claim)

    def test_a_savepoint_of_an_atomic_attempt_rolls_back_alone(self, backend: Backend) -> None:
        put(backend)
        claim = take_one(backend)
        with backend.atomic_attempt():
            kept = put(backend, "greet")
            with pytest.raises(ZeroDivisionError), backend.atomic():
                dropped = put(backend, "greet")
                raise ZeroDivisionError
            backend.settle_in_transaction(completed(claim))
        assert backend.jobs.get(dropped) is None
        assert job(backend, kept).status is JobStatus.QUEUED
        assert job(backend, claim.id).status is JobStatus.COMPLETED

    def test_race_write_attempt(self, backend: Backend) -> None:
        put(backend)
        claim = take_one(backend)

        def attempt() -> None:
            with backend.atomic_attempt():
                assert backend.jobs.get(claim.id) is not None  # a read comes first, as in many handlers
                backend.settle_in_transaction(completed(claim))

        other, _ = overlapping(backend, lambda: put(backend, "greet"), attempt)
        assert job(backend, other).status is JobStatus.QUEUED
        assert job(backend, claim.id).status is JobStatus.COMPLETED

    def test_race_attempt_attempt(self, backend: Backend) -> None:
        put_all(backend, draft(), draft())
        mine, yours = take(backend)

        def attempt(claim: Claim) -> None:
            with backend.atomic_attempt():
                assert backend.jobs.get(claim.id) is not None
                backend.settle_in_transaction(completed(claim))

        overlapping(backend, lambda: attempt(mine), lambda: attempt(yours))
        assert {job(backend, claim.id).status for claim in (mine, yours)} == {JobStatus.COMPLETED}
        assert backend.extend([mine, yours], LEASE).lost == (mine, yours)


def _but_progress(row: JobRecord) -> dict[str, object]:
    """Return everything that a report leaves alone."""
    return {one.name: getattr(row, one.name) for one in fields(row) if one.name not in ("progress", "updated_at")}
