"""Tests of races between two connections. The package's own tests show that they fail without the guards."""

from __future__ import annotations

import threading

from jobqueue.backends.base import Backend
from jobqueue.policy.leases import settle_dead, settle_overdue
from jobqueue.policy.settling import completed
from jobqueue.records import Scope
from jobqueue.states import JobStatus
from jobqueue.testing.clock import VirtualClock
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
    receipts,
    request,
    settle,
    take,
    take_one,
    together,
)


class RaceContract(Contract):
    """Tests of results that don't depend on which connection comes first."""

    def test_race_claim_claim(self, backend: Backend) -> None:
        put_all(backend, *(draft() for _ in range(4)))
        mine, yours = overlapping(backend, lambda: take(backend, 2), lambda: take(backend, 2, owner="you"))
        assert len(mine) == 2
        assert {claim.id for claim in mine}.isdisjoint({claim.id for claim in yours})
        assert {job(backend, claim.id).lease_owner for claim in mine} == {"me"}

    def test_race_claim_claim_group_by_group(self, backend: Backend) -> None:
        put_all(backend, draft("unheard_of", priority=1), *(draft() for _ in range(4)))
        mine, yours = overlapping(backend, lambda: take(backend, 2), lambda: take(backend, 2, owner="you"))
        assert len(mine) == 2
        assert {claim.id for claim in mine}.isdisjoint({claim.id for claim in yours})

    def test_race_end_claims_settle(self, backend: Backend) -> None:
        put(backend)
        claim = take_one(backend, owner="dead")
        ended, accepted = overlapping(
            backend, lambda: backend.end_claims("dead", settle_dead), lambda: finish(backend, claim, '"late"')
        )
        assert len(ended) == 1
        assert not accepted
        assert job(backend, claim.id).result is None

    def test_race_settle_end_claims(self, backend: Backend) -> None:
        put(backend)
        claim = take_one(backend, owner="dead")
        accepted, ended = overlapping(
            backend, lambda: finish(backend, claim, '"in time"'), lambda: backend.end_claims("dead", settle_dead)
        )
        assert accepted
        assert ended == ()
        assert job(backend, claim.id).result == "in time"

    def test_race_sweep_settle(self, backend: Backend, clock: VirtualClock) -> None:
        put(backend)
        claim = take_one(backend)
        clock.advance(61)
        _look_once(backend, clock)
        swept, accepted = overlapping(
            backend, lambda: backend.sweep(settle_overdue), lambda: finish(backend, claim, '"late"')
        )
        assert len(swept.ended) == 1
        assert not accepted
        assert (job(backend, claim.id).status, job(backend, claim.id).result) == (JobStatus.QUEUED, None)

    def test_race_settle_sweep(self, backend: Backend, clock: VirtualClock) -> None:
        put(backend)
        claim = take_one(backend)
        clock.advance(61)
        _look_once(backend, clock)
        accepted, _swept = overlapping(
            backend, lambda: finish(backend, claim, '"in time"'), lambda: backend.sweep(settle_overdue)
        )
        assert accepted
        assert (job(backend, claim.id).status, job(backend, claim.id).history) == (JobStatus.COMPLETED, ())

    def test_race_extend_sweep(self, backend: Backend, clock: VirtualClock) -> None:
        put(backend)
        claim = take_one(backend)
        clock.advance(61)
        _look_once(backend, clock)
        _extended, swept = overlapping(
            backend, lambda: backend.extend([claim], LEASE), lambda: backend.sweep(settle_overdue)
        )
        assert swept.ended == ()
        assert job(backend, claim.id).status is JobStatus.IN_PROGRESS
        assert finish(backend, claim)

    def test_race_sweep_extend(self, backend: Backend, clock: VirtualClock) -> None:
        put(backend)
        claim = take_one(backend)
        clock.advance(61)
        _look_once(backend, clock)
        swept, extension = overlapping(
            backend, lambda: backend.sweep(settle_overdue), lambda: backend.extend([claim], LEASE)
        )
        assert len(swept.ended) == 1
        assert extension.lost + extension.skipped == (claim,)
        row = job(backend, claim.id)
        assert (row.status, row.lease_until) == (JobStatus.QUEUED, None)

    def test_race_same_key_twice(self, backend: Backend) -> None:
        (mine,), (yours,) = overlapping(
            backend,
            lambda: receipts(backend, draft(idempotency_key="seven")),
            lambda: receipts(backend, draft(idempotency_key="seven")),
        )
        assert mine.created
        assert not yours.created
        assert mine.id == yours.id
        assert len(take(backend)) == 1

    def test_race_same_keys_among_many(self, backend: Backend) -> None:
        keys = [f"key-{number}" for number in range(300)]
        start = threading.Barrier(2)

        def enqueue(order: list[str]) -> list[list[str]]:
            ids: list[list[str]] = []
            for turn in range(3):
                backend.jobs.get("nosuch")  # opens the connection before the race begins
                drafts = [draft(idempotency_key=f"{turn}-{key}") for key in order]
                try:
                    start.wait(30)
                except threading.BrokenBarrierError:
                    return ids  # the other thread failed and raises the error
                try:
                    ids.append([one.id for one in backend.enqueue(drafts)])
                except BaseException:
                    start.abort()  # otherwise the other thread would wait for the next turn
                    raise
            return ids

        forwards, backwards = together(lambda: enqueue(keys), lambda: enqueue(keys[::-1]))
        assert forwards == [ids[::-1] for ids in backwards]
        assert len(take(backend, 1_000)) == 900

    def test_race_pause_claim(self, backend: Backend) -> None:
        put_all(backend, *(draft(queue="mail") for _ in range(300)))
        claimed, paused = threading.Semaphore(0), threading.Event()
        late: list[str] = []

        def claiming() -> None:
            for _ in range(100):  # of 300 jobs, so that some remain to be taken too late
                if not paused.is_set() and take(backend, 1):
                    claimed.release()
            assert paused.wait(30)
            late.extend(claim.id for claim in take(backend, 50))

        def pausing() -> None:
            for _ in range(5):
                assert claimed.acquire(timeout=30)
            backend.operator.pause(Scope.QUEUE, "mail")
            paused.set()

        together(claiming, claiming, pausing)
        assert late == []

    def test_race_cancel_settle(self, backend: Backend) -> None:
        put(backend)
        claim = take_one(backend)
        handled, refused = overlapping(
            backend, lambda: backend.operator.cancel([claim.id]), lambda: settle(backend, failing(claim))
        )
        assert (handled.done, refused) == ((claim.id,), ())
        row = job(backend, claim.id)
        assert (row.status, row.end_reason) == (JobStatus.FAILED, "cancelled")

    def test_race_cancel_turn(self, backend: Backend) -> None:
        put_all(backend, *(draft() for _ in range(6)))
        claims = take(backend, 3)
        offers = [completed(claims[0]), failing(claims[1]), completed(claims[2])]
        _, turn = overlapping(
            backend, lambda: backend.operator.cancel([claims[0].id]), lambda: backend.cycle("me", offers, request(3))
        )
        assert (turn.refused, len(turn.claims)) == ((), 3)
        assert turn.postponed in ((), (offers[0],))
        again = backend.cycle("me", turn.postponed)
        assert (again.refused, again.postponed) == ((), ())
        statuses = [job(backend, claim.id).status for claim in claims]
        assert statuses == [JobStatus.COMPLETED, JobStatus.QUEUED, JobStatus.COMPLETED]

    def test_race_settle_cancel(self, backend: Backend) -> None:
        put(backend)
        claim = take_one(backend)
        accepted, handled = overlapping(
            backend, lambda: finish(backend, claim), lambda: backend.operator.cancel([claim.id])
        )
        assert accepted
        assert handled.done == ()
        assert job(backend, claim.id).status is JobStatus.COMPLETED

    def test_race_retry_retry(self, backend: Backend) -> None:
        put(backend)
        claim = take_one(backend)
        bury(backend, claim)
        mine, yours = overlapping(
            backend, lambda: backend.operator.retry([claim.id]), lambda: backend.operator.retry([claim.id])
        )
        assert (mine.done, yours.done) == ((claim.id,), ())

    def test_race_purge_claim(self, backend: Backend) -> None:
        job_id = put(backend)
        handled, claims = overlapping(backend, lambda: backend.operator.purge([job_id]), lambda: take(backend))
        assert (handled.done, claims) == ((job_id,), [])
        assert backend.jobs.get(job_id) is None

    def test_race_many_workers(self, backend: Backend) -> None:
        ids = put_all(backend, *(draft(priority=1 + place % 3) for place in range(200)))
        seen: list[str] = []

        def working(owner: str) -> None:
            while claims := take(backend, 7, owner=owner):
                assert backend.cycle(owner, [completed(claim) for claim in claims]).refused == ()
                seen.extend(claim.id for claim in claims)

        together(*(lambda owner=f"w{number}": working(owner) for number in range(4)))
        assert sorted(seen) == sorted(ids)
        assert {job(backend, job_id).fence for job_id in ids} == {1}


def _look_once(backend: Backend, clock: VirtualClock) -> None:
    """Take the first of two looks, or nothing if the backend ends leases at the first look."""
    if backend.second_look:
        backend.sweep(settle_overdue)
        clock.advance(backend.second_look)
