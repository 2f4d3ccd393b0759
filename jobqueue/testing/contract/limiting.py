"""Tests of limits: how many jobs run at once, and how many start in a window."""

from __future__ import annotations

from datetime import timedelta

from jobqueue.backends.base import Backend
from jobqueue.policy.limits.limits import LimitBook
from jobqueue.policy.settling import released
from jobqueue.records import Again, Claim, ClaimRequest, Cycle, Later, Limit, LimitKind, Scope
from jobqueue.testing.clock import VirtualClock
from jobqueue.testing.contract.harness import (
    Contract,
    draft,
    failing,
    finish,
    job,
    overlapping,
    put,
    put_all,
    request,
    settle,
    sweep,
    take,
)


def at_once(number: int, key: str = "", name: str = "resize", scope: Scope = Scope.TYPE) -> Limit:
    """Return a limit of jobs that run at once."""
    return Limit(scope, name, LimitKind.CONCURRENCY, number, key=key)


def rate(number: int, per: float = 1.0, key: str = "", name: str = "resize", scope: Scope = Scope.TYPE) -> Limit:
    """Return a limit of starts in each window."""
    return Limit(scope, name, LimitKind.RATE, number, per, key)


def under(*limits: Limit, limit: int = 10, **values: object) -> ClaimRequest:
    """Return a request of a worker with these limits in code."""
    return request(limit, limits=limits, **values)


def claim(backend: Backend, *limits: Limit, limit: int = 10, owner: str = "me") -> list[Claim]:
    """Claim jobs under limits."""
    return take(backend, limit, owner, limits=limits)


def ids(claims: list[Claim]) -> list[str]:
    """Return the ids of claims, in their order."""
    return [one.id for one in claims]


class LimitContract(Contract):
    """Tests of ``backends.ports.limits`` and of claims under limits."""

    def test_no_more_than_the_number_run_at_once(self, backend: Backend) -> None:
        put_all(backend, *(draft() for _ in range(5)))
        first, second = claim(backend, at_once(2))
        assert claim(backend, at_once(2), owner="you") == []
        assert finish(backend, first)
        assert len(claim(backend, at_once(2), owner="you")) == 1
        assert finish(backend, second)

    def test_a_cycle_uses_the_slot_that_its_settlement_frees(self, backend: Backend) -> None:
        put_all(backend, draft(), draft())
        (first,) = claim(backend, at_once(1))
        cycle = backend.cycle("me", [released(first)], under(at_once(1)))
        assert len(cycle.claims) == 1

    def test_each_value_of_a_key_has_the_number_by_itself(self, backend: Backend) -> None:
        jobs = put_all(backend, *(draft(concurrency_key=f'{{"account":"{name}"}}') for name in "aaabb"))
        taken = claim(backend, at_once(2, key="account"))
        assert ids(taken) == [jobs[place] for place in (0, 1, 3, 4)]

    def test_jobs_without_a_value_for_the_key_are_not_limited(self, backend: Backend) -> None:
        texts = [None, "", "{}", "[]", "{", '{"account":7}', '{"account":["a"]}', '{"other":"a"}', "not JSON"]
        jobs = put_all(backend, *(draft(concurrency_key=text) for text in texts))
        assert ids(claim(backend, at_once(1, key="account"))) == jobs

    def test_several_limits_all_hold(self, backend: Backend) -> None:
        keys = ['{"account":"a","tenant":"x"}', '{"account":"b","tenant":"x"}', '{"account":"c","tenant":"y"}']
        jobs = put_all(backend, *(draft(concurrency_key=key) for key in [*keys, *keys]))
        limits = (at_once(3), at_once(1, key="account"), at_once(1, key="tenant"))
        assert ids(claim(backend, *limits)) == [jobs[0], jobs[2]]

    def test_claims_keep_their_order_and_pass_over_what_is_used_up(self, backend: Backend) -> None:
        late = put(backend, priority=9)
        free = put_all(backend, draft("greet", priority=3), draft("greet", priority=7))
        limited = put_all(backend, draft(priority=1), draft(priority=5), draft(priority=8))
        taken = claim(backend, at_once(2), limit=3)
        assert ids(taken) == [limited[0], free[0], limited[1]]
        assert ids(claim(backend, at_once(3))) == [free[1], limited[2]]
        assert job(backend, late).lease_owner is None

    def test_many_jobs_of_a_used_up_key_hide_no_other_key(self, backend: Backend) -> None:
        many = [draft(concurrency_key='{"account":"full"}') for _ in range(150)]
        put_all(backend, *many)
        limit = at_once(1, key="account")
        assert len(claim(backend, limit, limit=2)) == 1
        behind = put_all(backend, *(draft(concurrency_key=f'{{"account":"{name}"}}') for name in "abba"))
        assert ids(claim(backend, limit, limit=5)) == behind[:2]

    def test_limits_of_a_queue_hold_for_all_its_types(self, backend: Backend) -> None:
        put_all(backend, draft(queue="mail"), draft("greet", queue="mail"), draft("greet"), draft("greet"))
        limit = at_once(1, name="mail", scope=Scope.QUEUE)
        assert [one.queue for one in claim(backend, limit)] == ["mail", "default", "default"]

    def test_a_pattern_limits_each_queue_by_itself(self, backend: Backend) -> None:
        put_all(backend, *(draft(queue=name) for name in ("mail.a", "mail.a", "mail.b", "mail_c", "mail_c")))
        taken = claim(backend, at_once(1, name="mail.*", scope=Scope.QUEUE))
        assert [one.queue for one in taken] == ["mail.a", "mail.b", "mail_c", "mail_c"]

    def test_aliases_share_the_limit_of_their_type(self, backend: Backend) -> None:
        put_all(backend, draft("greet"), draft("resize"))
        cycle = backend.cycle("me", (), under(at_once(1), names={"greet": "resize"}))
        assert [one.type for one in cycle.claims] == ["greet"]

    def test_what_does_not_run_uses_nothing(self, backend: Backend, clock: VirtualClock) -> None:
        for decision in (Again(timedelta(hours=1)), Later(timedelta(hours=1))):
            put(backend)
            (waiting,) = claim(backend, at_once(1))
            assert settle(backend, failing(waiting, decision)) == ()
        put(backend)
        (lost,) = claim(backend, at_once(1))
        put(backend, priority=1)
        assert claim(backend, at_once(1)) == []
        clock.advance(61)
        sweep(backend, clock)
        assert len(claim(backend, at_once(1))) == 1
        assert job(backend, lost.id).lease_owner is None

    def test_expired_jobs_under_a_limit_end(self, backend: Backend, clock: VirtualClock) -> None:
        late, last = put_all(backend, draft(expires_at=clock.now() + timedelta(seconds=1)), draft())
        clock.advance(2)
        assert ids(claim(backend, at_once(1))) == [last]
        assert job(backend, late).end_reason == "expired"

    def test_paused_and_later_jobs_stay(self, backend: Backend) -> None:
        put(backend, delay=timedelta(seconds=60))
        put(backend, queue="mail")
        backend.operator.pause(Scope.QUEUE, "mail")
        assert claim(backend, at_once(1)) == []

    # Rates

    def test_no_window_has_more_starts_than_the_rate(self, backend: Backend, clock: VirtualClock) -> None:
        put_all(backend, *(draft() for _ in range(60)))
        limit, starts = rate(4, per=10.0), list[float]()
        for _ in range(40):
            clock.advance(1.3)
            starts += [clock.monotonic()] * len(claim(backend, limit, limit=3))
        for begin in starts:
            assert sum(begin <= one < begin + 10 for one in starts) <= 4
        assert len(starts) >= 20

    def test_a_cycle_says_when_the_next_start_is_allowed(self, backend: Backend, clock: VirtualClock) -> None:
        put_all(backend, *(draft() for _ in range(3)))
        assert len(claim(backend, rate(1, per=10.0))) == 1
        clock.advance(4)
        cycle = backend.cycle("me", (), under(rate(1, per=10.0)))
        assert (cycle.claims, cycle.next_due, cycle.is_partial) == ((), timedelta(seconds=6), True)
        clock.advance(6)
        assert len(claim(backend, rate(1, per=10.0))) == 1

    def test_an_attempt_counts_whatever_became_of_it(self, backend: Backend) -> None:
        put_all(backend, draft(), draft())
        (first,) = claim(backend, rate(1, per=10.0), limit=1)
        assert settle(backend, released(first)) == ()
        assert claim(backend, rate(1, per=10.0)) == []
        backend.operator.cancel([first.id])
        backend.operator.purge([first.id])
        assert claim(backend, rate(1, per=10.0)) == []

    def test_each_value_of_a_key_has_the_rate_by_itself(self, backend: Backend, clock: VirtualClock) -> None:
        jobs = put_all(backend, *(draft(concurrency_key=f'{{"tenant":"{name}"}}') for name in "aaab"))
        limit = rate(1, per=10.0, key="tenant")
        assert ids(claim(backend, limit)) == [jobs[0], jobs[3]]
        assert claim(backend, limit) == []
        clock.advance(10)
        assert ids(claim(backend, limit)) == [jobs[1]]

    def test_a_value_that_no_database_takes_is_none(self, backend: Backend) -> None:
        keys = [f'{{"tenant":"{value}"}}' for value in (r"\ud800", r"a\u0000b", r"\ud800", "a", "a")]
        jobs = put_all(backend, *(draft(concurrency_key=key) for key in keys))
        limits = rate(1, per=10.0, key="tenant"), at_once(1, key="tenant")
        assert ids(claim(backend, *limits)) == jobs[:4]

    def test_starts_of_a_clock_that_was_ahead_do_not_count(self, backend: Backend, clock: VirtualClock) -> None:
        put(backend)
        assert len(claim(backend, rate(1, per=10.0))) == 1
        clock.advance(-timedelta(days=1))
        put(backend)
        assert len(claim(backend, rate(1, per=10.0))) == 1

    # Stored limits

    def test_a_stored_limit_replaces_the_one_in_code(self, backend: Backend, clock: VirtualClock) -> None:
        put_all(backend, *(draft() for _ in range(9)))
        backend.limits.set(at_once(3), "the provider is slow", "ann")
        assert len(claim(backend, at_once(1))) == 3
        backend.limits.set(at_once(2))
        clock.advance(1)
        assert claim(backend, at_once(1)) == []
        assert backend.limits.unset(at_once(7))
        assert not backend.limits.unset(at_once(7))
        clock.advance(1)
        assert len(claim(backend, at_once(5))) == 2

    def test_a_stored_limit_needs_none_in_code(self, backend: Backend) -> None:
        put_all(backend, *(draft() for _ in range(4)))
        backend.limits.set(rate(2))
        assert len(claim(backend)) == 2

    def test_stored_limits_are_listed(self, backend: Backend, clock: VirtualClock) -> None:
        backend.limits.set(rate(2, key="tenant"), "why", "ann")
        backend.limits.set(at_once(4))
        backend.limits.set(at_once(5), "better", "bob")
        first, second = backend.limits.stored()
        assert (first.limit, first.reason, first.author) == (at_once(5), "better", "bob")
        assert (second.limit, second.stored_at) == (rate(2, key="tenant"), clock.now())

    # What is in use

    def test_uses(self, backend: Backend, clock: VirtualClock) -> None:
        limits = (at_once(2, key="account"), rate(3, per=10.0), at_once(9))
        keys = [f'{{"account":"{name}"}}' for name in "aaab"]
        jobs = put_all(backend, *(draft(concurrency_key=key) for key in keys))
        assert len(claim(backend, *limits)) == 3
        clock.advance(4)
        book = LimitBook(limits)
        found = backend.limits.uses(book, [("default", "resize")])
        assert [(one.limit, one.value, one.used) for one in found] == [
            (at_once(9), "", 3),
            (at_once(2, key="account"), "a", 2),
            (at_once(2, key="account"), "b", 1),
            (rate(3, per=10.0), "", 3),
        ]
        assert found[1].running == tuple(sorted(jobs[:2]))
        assert (found[3].next_start, found[3].is_used_up) == (timedelta(seconds=6), True)
        assert found[1].since == clock.now() - timedelta(seconds=4)
        mine = backend.limits.uses_of(book, [("default", "resize", keys[2]), ("default", "other", keys[3])])
        assert [(one.limit, one.value, one.used) for one in mine] == [
            (at_once(2, key="account"), "a", 2),
            (rate(3, per=10.0), "", 3),
            (at_once(9), "", 3),
        ]
        assert mine[1].next_start == timedelta(seconds=6)

    def test_first_due(self, backend: Backend, clock: VirtualClock) -> None:
        keys = [f'{{"account":"{name}"}}' for name in "abc"]
        put_all(backend, *(draft(concurrency_key=key) for key in keys), draft(priority=1), draft(queue="mail"))
        put_all(backend, draft(priority=1, scheduled_at=clock.now() + timedelta(hours=1)))
        found = backend.limits.first_due("default", "resize", sample=2)
        assert found == [(None, clock.now()), (keys[0], clock.now()), (keys[1], clock.now())]

    # Races

    def test_race_claim_claim_at_once(self, backend: Backend) -> None:
        put_all(backend, draft(), draft(queue="mail"))
        assert len(self._both(backend, at_once(1))) == 1

    def test_race_claim_claim_rate(self, backend: Backend) -> None:
        put_all(backend, draft(), draft(queue="mail"))
        assert len(self._both(backend, rate(1, per=60.0))) == 1

    def test_race_claim_claim_of_one_key(self, backend: Backend) -> None:
        put_all(backend, *(draft(concurrency_key='{"account":"a"}', queue=name) for name in ("default", "mail")))
        limit = at_once(1, key="account")
        assert len(self._both(backend, limit)) == 1

    def test_race_contended_claim_looks_again_soon(self, backend: Backend) -> None:
        put_all(backend, draft(), draft())
        _mine, (cycle,) = overlapping(
            backend, lambda: self._claim_one(backend, "me"), lambda: self._claim_one(backend, "you")
        )
        assert len(cycle.claims) == 1 or (cycle.next_due or timedelta(1)) < timedelta(seconds=0.1)

    @staticmethod
    def _claim_one(backend: Backend, owner: str) -> list[Cycle]:
        return [backend.cycle(owner, (), under(at_once(2), limit=1))]

    @staticmethod
    def _both(backend: Backend, limit: Limit) -> list[Claim]:
        """Claim in two transactions at once: first a job of one queue, then one of another."""
        mine, yours = overlapping(
            backend,
            lambda: take(backend, 1, limits=(limit,), queues=frozenset({"default"})),
            lambda: take(backend, 1, "you", limits=(limit,), queues=frozenset({"mail"})),
        )
        return [*mine, *yours]
