"""Tests of the claim: in order, on time, never more than requested, never of paused queues or unknown types."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobqueue.backends.base import Backend
from jobqueue.records import Scope
from jobqueue.states import JobStatus
from jobqueue.testing.clock import NOON, VirtualClock
from jobqueue.testing.contract.harness import (
    LEASE,
    Contract,
    draft,
    failing,
    finish,
    job,
    put,
    put_all,
    request,
    settle,
    take,
    take_one,
)


class ClaimContract(Contract):
    """Tests of which jobs a worker gets."""

    def test_a_claim_says_all_that_its_holder_needs(self, backend: Backend, clock: VirtualClock) -> None:
        expiry = NOON + timedelta(hours=1)
        job_id = put(backend, queue="images", priority=2, max_retries=4, tenant="acme", expires_at=expiry)
        clock.advance(5)
        claim = take_one(backend)
        assert (claim.id, claim.type, claim.queue, claim.priority) == (job_id, "resize", "images", 2)
        assert (claim.attempt, claim.max_retries, claim.fence, claim.owner) == (1, 4, 1, "me")
        assert (claim.scheduled_at, claim.created_at, claim.expires_at) == (NOON, NOON, expiry)
        assert (claim.tenant, claim.timeout, claim.crash_count, claim.payload_version) == ("acme", None, 0, 1)
        assert '"image_id"' in claim.payload

    def test_the_row_says_who_has_it_and_until_when(self, backend: Backend) -> None:
        claim = take_one(backend) if put(backend) else None
        assert claim is not None
        row = job(backend, claim.id)
        assert (row.status, row.lease_owner, row.lease_until) == (JobStatus.IN_PROGRESS, "me", NOON + LEASE)
        assert (row.attempts, row.fence, row.started_at) == (1, 1, NOON)

    def test_a_type_may_have_a_lease_of_its_own(self, backend: Backend) -> None:
        slow, quick = put(backend, "rare"), put(backend, "resize")
        take(backend, leases={"rare": timedelta(minutes=9)})
        assert job(backend, slow).lease_until == NOON + timedelta(minutes=9)
        assert job(backend, quick).lease_until == NOON + LEASE

    def test_claims_come_by_priority_then_time_then_id(self, backend: Backend, clock: VirtualClock) -> None:
        clock.advance(3_600)
        early, late = NOON + timedelta(minutes=1), NOON + timedelta(minutes=2)
        wanted = [(1, late), (1, late), (3, early), (3, late), (10, early), (10, late)]
        ids = put_all(backend, *(draft(priority=priority, scheduled_at=at) for priority, at in wanted))
        shuffled = put_all(backend, draft(priority=5, scheduled_at=late), draft(priority=5, scheduled_at=early))
        expected = ids[:4] + shuffled[::-1] + ids[4:]
        assert [claim.id for claim in take(backend, 3)] == expected[:3]
        assert [claim.id for claim in take(backend, 1)] == expected[3:4]
        assert [claim.id for claim in take(backend)] == expected[4:]

    def test_order_holds_across_queues_and_types(self, backend: Backend) -> None:
        mixed = [("resize", "a"), ("greet", "b"), ("resize", "b"), ("rare", "a"), ("greet", "a")]
        ids = put_all(backend, *(draft(job_type, queue=queue) for job_type, queue in mixed))
        assert [claim.id for claim in take(backend, 4)] == ids[:4]

    def test_never_more_than_asked(self, backend: Backend) -> None:
        put_all(backend, *(draft(priority=1 + place % 10) for place in range(25)))
        assert [len(take(backend, limit)) for limit in (1, 7, 10, 10, 10)] == [1, 7, 10, 7, 0]

    def test_nothing_before_it_is_due(self, backend: Backend, clock: VirtualClock) -> None:
        job_id = put(backend, delay=timedelta(seconds=30), priority=1)
        assert take(backend) == []
        clock.advance(29.999)
        assert take(backend) == []
        clock.advance(0.001)
        assert [claim.id for claim in take(backend)] == [job_id]

    def test_the_next_due_job_is_announced_where_fewer_came_than_asked(self, backend: Backend) -> None:
        assert backend.cycle("me", (), request()).next_due is None
        put_all(backend, draft(delay=timedelta(seconds=90)), draft(delay=timedelta(seconds=30)), draft())
        cycle = backend.cycle("me", (), request(2))
        assert len(cycle.claims) == 1
        assert cycle.next_due == timedelta(seconds=30)

    def test_a_job_is_claimed_once(self, backend: Backend) -> None:
        put_all(backend, draft(), draft())
        assert {claim.id for claim in take(backend)}.isdisjoint({claim.id for claim in take(backend, owner="you")})
        assert take(backend, owner="you") == []

    def test_each_claim_has_a_new_fence(self, backend: Backend, clock: VirtualClock) -> None:
        put(backend, max_retries=9)
        fences = []
        for _ in range(3):
            claim = take_one(backend)
            fences.append(claim.fence)
            assert settle(backend, failing(claim)) == ()
            clock.advance(10)
        assert fences == sorted(set(fences))

    def test_unknown_types_stay_for_a_worker_that_knows_them(self, backend: Backend) -> None:
        ids = put_all(backend, *(draft("unheard_of", priority=1) for _ in range(30)))
        known = put(backend)
        assert [claim.id for claim in take(backend, 5)] == [known]
        assert take(backend, 5) == []
        assert job(backend, ids[0]).status is JobStatus.QUEUED
        assert len(take(backend, types=frozenset({"unheard_of"}), limit=50)) == 30

    def test_only_from_the_queues_asked_for(self, backend: Backend) -> None:
        put_all(backend, *(draft(queue="mail", priority=1) for _ in range(30)))
        wanted = put_all(backend, draft(queue="images"), draft(queue="images", priority=3))
        claims = take(backend, 5, queues=frozenset({"images", "sound"}))
        assert [claim.id for claim in claims] == wanted[::-1]

    @pytest.mark.parametrize(("scope", "name"), [(Scope.QUEUE, "mail"), (Scope.TYPE, "greet")])
    def test_never_from_what_is_paused(self, backend: Backend, scope: Scope, name: str) -> None:
        put_all(backend, *(draft("greet", queue="mail", priority=1) for _ in range(30)))
        free = put(backend)
        assert backend.operator.pause(scope, name, "too hot")
        assert [claim.id for claim in take(backend, 5)] == [free]
        assert take(backend, 5) == []
        assert backend.operator.resume(scope, name)
        assert len(take(backend, 50)) == 30

    def test_an_expired_job_is_not_claimed(self, backend: Backend, clock: VirtualClock) -> None:
        put_all(backend, *(draft(priority=1, expires_at=NOON + timedelta(seconds=10)) for _ in range(20)))
        fresh = put(backend, expires_at=NOON + timedelta(days=1))
        clock.advance(10)
        assert [claim.id for claim in take(backend, 5)] == [fresh]

    def test_an_expired_job_that_a_claim_meets_ends_as_failed(self, backend: Backend, clock: VirtualClock) -> None:
        late = put(backend, expires_at=NOON + timedelta(seconds=10))
        clock.advance(10)
        assert take(backend) == []
        row = job(backend, late)
        assert (row.status, row.end_reason, row.attempts) == (JobStatus.FAILED, "expired", 0)
        assert (row.completed_at, row.history) == (clock.now(), ())

    def test_a_crowded_head_clears_again(self, backend: Backend) -> None:
        put_all(backend, draft("unheard_of", priority=1))
        first = put(backend)
        assert finish(backend, take_one(backend))
        second, third = put(backend), put(backend, "greet")
        take(backend, types=frozenset({"unheard_of"}))
        assert [claim.id for claim in take(backend)] == [second, third]
        assert job(backend, first).status is JobStatus.COMPLETED
