"""Tests of leases: kept while they are extended, ended by a sweep after they expire, and never before."""

from __future__ import annotations

from datetime import timedelta

from jobqueue.backends.base import Backend
from jobqueue.policy.fingerprint import with_fingerprint
from jobqueue.policy.leases import settle_dead, settle_overdue
from jobqueue.records import Ending, Failure
from jobqueue.states import JobStatus
from jobqueue.testing.clock import NOON, VirtualClock
from jobqueue.testing.contract.harness import (
    LEASE,
    Contract,
    draft,
    finish,
    job,
    put,
    put_all,
    sweep,
    take,
    take_one,
)


class LeaseContract(Contract):
    """Tests of how long a claim is held."""

    def test_an_extended_lease_counts_from_now(self, backend: Backend, clock: VirtualClock) -> None:
        put(backend)
        claim = take_one(backend)
        clock.advance(20)
        extension = backend.extend([claim], LEASE)
        assert (extension.lost, extension.skipped, extension.cancelled) == ((), (), ())
        assert job(backend, claim.id).lease_until == NOON + timedelta(seconds=80)

    def test_extend_keeps_only_what_is_still_held(self, backend: Backend) -> None:
        put_all(backend, draft(), draft(), draft())
        held, done, purged = take(backend)
        assert finish(backend, done)
        assert finish(backend, purged)
        backend.operator.purge([purged.id])
        assert backend.extend([held, done, purged], LEASE).lost == (done, purged)
        assert job(backend, done.id).lease_until is None

    def test_nothing_is_extended_for_nothing(self, backend: Backend) -> None:
        assert backend.extend([], LEASE).lost == ()

    def test_extend_tells_what_an_operator_wants_stopped(self, backend: Backend) -> None:
        put_all(backend, draft(), draft())
        first, second = take(backend)
        backend.operator.cancel([second.id])
        assert backend.extend([first, second], LEASE).cancelled == (second,)

    def test_a_sweep_never_ends_a_lease_that_still_runs(self, backend: Backend, clock: VirtualClock) -> None:
        put(backend)
        claim = take_one(backend)
        clock.advance(60)
        assert sweep(backend, clock).ended == ()
        assert finish(backend, claim)

    def test_an_extended_lease_survives_the_sweep(self, backend: Backend, clock: VirtualClock) -> None:
        put(backend)
        claim = take_one(backend)
        for _ in range(3):
            clock.advance(50)
            backend.extend([claim], LEASE)
            assert sweep(backend, clock).ended == ()
        assert finish(backend, claim)

    def test_a_lease_extended_between_two_looks_survives(self, backend: Backend, clock: VirtualClock) -> None:
        put(backend)
        claim = take_one(backend)
        clock.advance(61)
        first = backend.sweep(settle_overdue)
        if not backend.second_look:
            assert len(first.ended) == 1
            return
        assert (first.ended, first.look_again) == ((), True)
        backend.extend([claim], LEASE)
        clock.advance(backend.second_look)
        assert backend.sweep(settle_overdue).ended == ()
        assert finish(backend, claim)

    def test_a_lease_that_ran_out_gives_the_job_back(self, backend: Backend, clock: VirtualClock) -> None:
        put(backend)
        claim = take_one(backend, owner="host:1:abc")
        clock.advance(61)
        (ended,) = sweep(backend, clock).ended
        row = job(backend, claim.id)
        assert (ended.id, ended.fence, row.status) == (claim.id, claim.fence, JobStatus.QUEUED)
        assert (row.attempts, row.lease_owner, row.lease_until) == (1, None, None)
        assert [(one.ending, one.owner) for one in row.history] == [("lease_lost", "host:1:abc")]
        assert take_one(backend).fence == 2

    def test_a_poison_job_becomes_a_dead_letter(self, backend: Backend, clock: VirtualClock) -> None:
        put(backend, max_retries=2)
        for _ in range(2):
            claim = take_one(backend)
            clock.advance(61)
            sweep(backend, clock)
        row = job(backend, claim.id)
        assert (row.status, row.attempts, row.end_reason) == (JobStatus.DEAD_LETTER, 2, "lease lost")
        assert len(row.history) == 2

    def test_jobs_lost_together_run_alone_before_one_is_given_up(self, backend: Backend, clock: VirtualClock) -> None:
        put_all(backend, draft(max_retries=1), draft(max_retries=1))
        claims = take(backend, owner="them")
        clock.advance(61)
        sweep(backend, clock)
        rows = [job(backend, claim.id) for claim in claims]
        assert [(row.status, row.attempts, row.crash_count) for row in rows] == [(JobStatus.QUEUED, 0, 1)] * 2
        again = take_one(backend)
        clock.advance(61)
        sweep(backend, clock)
        assert job(backend, again.id).status is JobStatus.DEAD_LETTER

    def test_company_is_every_job_that_the_owner_still_holds(self, backend: Backend, clock: VirtualClock) -> None:
        put_all(backend, draft(max_retries=1), draft(max_retries=1))
        first = take_one(backend, owner="them")
        clock.advance(30)
        take_one(backend, owner="them")
        clock.advance(31)
        assert len(sweep(backend, clock).ended) == 1
        assert (job(backend, first.id).status, job(backend, first.id).crash_count) == (JobStatus.QUEUED, 1)

    def test_a_cancelled_job_whose_lease_ran_out_does_not_come_back(
        self, backend: Backend, clock: VirtualClock
    ) -> None:
        put(backend)
        claim = take_one(backend)
        backend.operator.cancel([claim.id])
        clock.advance(61)
        sweep(backend, clock)
        row = job(backend, claim.id)
        assert (row.status, row.end_reason) == (JobStatus.FAILED, "cancelled")

    def test_a_sweep_stops_at_its_limit_and_goes_on_next_time(self, backend: Backend, clock: VirtualClock) -> None:
        put_all(backend, *(draft() for _ in range(5)))
        take(backend)
        clock.advance(61)
        ended = 0
        for _ in range(8):
            swept = len(backend.sweep(settle_overdue, limit=2).ended)
            assert swept <= 2
            ended += swept
            clock.advance(2)
        assert ended == 5

    def test_queued_jobs_past_their_expiry_end_as_failed(self, backend: Backend, clock: VirtualClock) -> None:
        late = put(backend, "unheard_of", expires_at=NOON + timedelta(seconds=10))
        in_time = put(backend, expires_at=NOON + timedelta(seconds=11))
        clock.advance(10)
        assert sweep(backend, clock).expired == (late,)
        row = job(backend, late)
        assert (row.status, row.end_reason, row.completed_at) == (JobStatus.FAILED, "expired", clock.now())
        assert job(backend, in_time).status is JobStatus.QUEUED

    # The claims of a dead worker

    def test_the_claims_of_a_dead_worker_end_while_their_leases_run(self, backend: Backend) -> None:
        put_all(backend, draft(), draft())
        claims = take(backend, owner="dead")
        ended = backend.end_claims("dead", settle_dead)
        assert {one.claim for one in ended} == {(claim.id, claim.fence) for claim in claims}
        for claim in claims:
            row = job(backend, claim.id)
            assert (row.status, row.attempts, row.crash_count) == (JobStatus.QUEUED, 0, 1)
            assert (row.lease_owner, row.lease_until) == (None, None)
            assert [(one.ending, one.owner) for one in row.history] == [("crashed", "dead")]
        assert backend.end_claims("dead", settle_dead) == ()
        assert {claim.fence for claim in take(backend)} == {2}

    def test_no_other_workers_claims_end(self, backend: Backend) -> None:
        put_all(backend, draft(), draft())
        mine, theirs = take_one(backend, owner="alive"), take_one(backend, owner="dead")
        (ended,) = backend.end_claims("dead", settle_dead)
        assert ended.id == theirs.id
        assert finish(backend, mine)
        assert backend.end_claims("nobody", settle_dead) == ()

    def test_a_dead_workers_claim_is_settled_by_nobody_else(self, backend: Backend) -> None:
        put(backend)
        claim = take_one(backend, owner="dead")
        backend.end_claims("dead", settle_dead)
        assert not finish(backend, claim)
        assert backend.extend([claim], LEASE).lost == (claim,)
        take_one(backend, owner="dead")
        assert not finish(backend, claim)

    def test_a_job_that_kills_its_worker_alone_becomes_a_dead_letter(self, backend: Backend) -> None:
        put(backend, max_retries=2)
        for _ in range(2):
            claim = take_one(backend, owner="dead")
            backend.end_claims("dead", settle_dead)
        row = job(backend, claim.id)
        assert (row.status, row.attempts, row.end_reason) == (JobStatus.DEAD_LETTER, 2, "crashed")
        failure = Failure.of(Ending.CRASHED, message=str(row.error))
        assert row.error_fingerprint == with_fingerprint("resize", failure).fingerprint

    def test_a_cancelled_job_of_a_dead_worker_does_not_come_back(self, backend: Backend) -> None:
        put(backend)
        claim = take_one(backend, owner="dead")
        backend.operator.cancel([claim.id])
        backend.end_claims("dead", settle_dead)
        row = job(backend, claim.id)
        assert (row.status, row.end_reason) == (JobStatus.FAILED, "cancelled")

    def test_the_claims_of_a_dead_worker_end_in_batches(self, backend: Backend) -> None:
        put_all(backend, *(draft() for _ in range(5)))
        take(backend, owner="dead")
        assert [len(backend.end_claims("dead", settle_dead, limit=2)) for _ in range(4)] == [2, 2, 1, 0]
