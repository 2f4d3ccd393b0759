"""Tests of what is read of the queue's health: dead letters, ended leases, quiet jobs and tenants."""

from __future__ import annotations

from datetime import timedelta

from jobqueue.backends.base import Backend
from jobqueue.records import DeadLetterCount, LapsedLeases, Progress, QuietJob
from jobqueue.testing.clock import NOON, VirtualClock
from jobqueue.testing.contract.harness import (
    LEASE,
    Contract,
    bury,
    draft,
    failing,
    put,
    put_all,
    settle,
    take,
    take_one,
)

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


class HealthContract(Contract):
    """Tests of the reader of the queue's health."""

    # Dead letters

    def test_no_dead_letters_at_first(self, backend: Backend) -> None:
        put(backend)
        assert backend.health.dead_letters() == []

    def test_dead_letters_are_counted_by_queue_and_type(self, backend: Backend) -> None:
        names = [("mail", "greet"), ("default", "resize"), ("mail", "resize"), ("mail", "greet"), ("zoo", "rare")]
        put_all(backend, *(draft(kind, queue=queue) for queue, kind in names), draft(queue="later", delay=MINUTE))
        for claim in take(backend):
            bury(backend, claim)
        assert backend.health.dead_letters() == [
            DeadLetterCount("default", "resize", 1),
            DeadLetterCount("mail", "greet", 2),
            DeadLetterCount("mail", "resize", 1),
            DeadLetterCount("zoo", "rare", 1),
        ]
        assert [one.queue for one in backend.health.dead_letters(most=2)] == ["default", "mail"]

    def test_dead_letters_are_counted_up_to_a_cap(self, backend: Backend) -> None:
        put_all(backend, *(draft() for _ in range(3)), draft("greet"))
        for claim in take(backend):
            bury(backend, claim)
        found = [(one.type, one.count, one.capped) for one in backend.health.dead_letters(cap=2)]
        assert found == [("greet", 1, False), ("resize", 2, True)]

    def test_critical_dead_letters_are_listed_by_queue_and_type_the_last_first(self, backend: Backend) -> None:
        ids = put_all(backend, *(draft(kind, queue="mail") for kind in ("greet", "rare", "greet", "resize")))
        for claim in take(backend):
            bury(backend, claim)
        found = backend.health.critical_dead({"greet", "rare", "unheard-of"})
        assert sorted(one.id for one in found) == sorted(ids[:3])
        assert [one.id for one in found if one.type == "greet"] == [ids[2], ids[0]]
        assert {(one.queue, one.died_at) for one in found} == {("mail", NOON)}
        assert len(backend.health.critical_dead({"greet", "rare"}, limit=2)) == 2
        assert backend.health.critical_dead(set()) == []

    # Ended leases

    def test_leases_that_ended_are_counted_by_owner(self, backend: Backend, clock: VirtualClock) -> None:
        put_all(backend, *(draft() for _ in range(4)))
        take(backend, 2, "first")
        clock.advance(10)
        take(backend, 1, "second")
        clock.advance(LEASE - 5 * SECOND)
        assert backend.health.lapsed_leases(timedelta(0)) == [LapsedLeases("first", 2, NOON + LEASE)]
        assert backend.health.lapsed_leases(timedelta(0), cap=1) == [LapsedLeases("first", 1, NOON + LEASE)]
        assert backend.health.lapsed_leases(5 * SECOND) == []
        clock.advance(11)
        assert [(one.owner, one.jobs) for one in backend.health.lapsed_leases(5 * SECOND)] == [
            ("first", 2),
            ("second", 1),
        ]

    # Quiet jobs

    def test_jobs_that_stopped_to_report_progress_are_listed(self, backend: Backend, clock: VirtualClock) -> None:
        put_all(backend, *(draft() for _ in range(3)))
        quiet, busy, _mute = take(backend)
        clock.advance(1)
        for claim in (quiet, busy):
            backend.progress([Progress(claim.id, claim.fence, "me", '{"percent": 1}')])
        clock.advance(MINUTE)
        backend.progress([Progress(busy.id, busy.fence, "me", '{"percent": 2}')])
        clock.advance(SECOND)
        assert backend.health.quiet_jobs(MINUTE) == [QuietJob(quiet.id, "resize", "default", "me", NOON + SECOND)]
        assert backend.health.quiet_jobs(2 * MINUTE) == []
        assert len(backend.health.quiet_jobs(timedelta(0), limit=1)) == 1

    def test_the_progress_of_an_earlier_attempt_says_nothing(self, backend: Backend, clock: VirtualClock) -> None:
        put(backend)
        claim = take_one(backend)
        clock.advance(1)
        backend.progress([Progress(claim.id, claim.fence, "me", '{"percent": 1}')])
        assert settle(backend, failing(claim)) == ()
        clock.advance(MINUTE)
        take_one(backend)
        clock.advance(MINUTE)
        assert backend.health.quiet_jobs(SECOND) == []

    # Tenants

    def test_the_tenants_of_due_jobs_are_sampled_at_both_ends(self, backend: Backend, clock: VirtualClock) -> None:
        for tenant in ("first", "acme", "acme", "acme", None):
            clock.advance(1)
            put(backend, tenant=tenant)
        put(backend, "greet", tenant="other")
        put(backend, queue="mail", tenant="other")
        put(backend, tenant="other", delay=MINUTE)
        assert backend.health.tenants("default", "resize", sample=2) == {"first": 1, "acme": 2, "": 1}
        put(backend, tenant="better", priority=1)
        assert backend.health.tenants("default", "resize", sample=1) == {"first": 1, "": 1, "better": 2}
        assert backend.health.tenants("default", "rare") == {}

    # Clocks

    def test_a_virtual_clock_is_this_machines_own(self, backend: Backend) -> None:
        assert backend.health.clock_skew() == timedelta(0)
