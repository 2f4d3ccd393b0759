"""Tests of fair queues: whose jobs a claim takes."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

from jobqueue.backends.base import Backend
from jobqueue.policy.settling import released
from jobqueue.records import Amendment, Claim, ClaimRequest, Limit, QueueOptions, Scope
from jobqueue.testing.clock import VirtualClock
from jobqueue.testing.contract.harness import (
    Contract,
    draft,
    finish,
    job,
    overlapping,
    put,
    put_all,
    request,
    settle,
)
from jobqueue.testing.contract.limiting import at_once, rate


def fair(limit: int = 1, weights: dict[str, float] | None = None, *limits: Limit, **values: Any) -> ClaimRequest:
    """Return a request of a worker for which the queue ``default`` is fair."""
    options = {"default": QueueOptions(fair="tenant", weights=weights or {})}
    return request(limit, limits=limits, **{"queue_options": options, "entries": ("default",), **values})


def jobs(backend: Backend, keys: str, **values: Any) -> list[str]:
    """Enqueue a job for each letter."""
    return put_all(backend, *(draft(fair_key=key, **values) for key in keys))


class TurnContract(Contract):
    """Tests of ``backends.ports.turns`` and of claims from fair queues."""

    def test_turns_go_round(self, backend: Backend) -> None:
        jobs(backend, "aaaaaabbc")
        assert self._served(backend, 9) == "abcabaaaa"

    def test_one_claim_takes_the_same_as_several(self, backend: Backend) -> None:
        jobs(backend, "aaaaaabbc")
        assert Counter(self._served(backend, 5, at_once=5)) == Counter("aabbc")
        assert self._served(backend, 4, at_once=4) == "aaaa"

    def test_the_jobs_of_a_turn_keep_their_order(self, backend: Backend) -> None:
        first, second = jobs(backend, "aa", type="greet"), jobs(backend, "aa")
        soon = jobs(backend, "a", priority=1)
        taken = [self._take(backend)[0].id for _ in range(5)]
        assert taken == [*soon, *first, *second]

    def test_workers_share_what_was_served(self, backend: Backend) -> None:
        jobs(backend, "aaaabbbb")
        taken = [self._take(backend, owner=f"worker {number}") for number in range(8)]
        assert "".join(self._key(backend, one) for (one,) in taken) == "abababab"

    def test_weights(self, backend: Backend) -> None:
        jobs(backend, "a" * 30 + "b" * 30)
        assert Counter(self._served(backend, 20, weights={"b": 3.0})) == {"a": 5, "b": 15}

    def test_a_newcomer_begins_level(self, backend: Backend) -> None:
        jobs(backend, "a" * 20 + "b" * 20)
        self._served(backend, 10)
        jobs(backend, "c" * 10)
        assert Counter(self._served(backend, 9)) == {"a": 3, "b": 3, "c": 3}

    def test_absence_gives_no_credit(self, backend: Backend) -> None:
        jobs(backend, "b" + "a" * 20)
        assert Counter(self._served(backend, 9)) == {"a": 8, "b": 1}
        jobs(backend, "b" * 10)
        assert Counter(self._served(backend, 6)) == {"a": 3, "b": 3}

    def test_jobs_without_a_value_have_one_turn(self, backend: Backend) -> None:
        jobs(backend, "aaaa")
        put_all(backend, draft(), draft(fair_key=""), draft(), draft())
        assert Counter(self._served(backend, 4)) == {"a": 2, "-": 2}

    def test_a_job_that_is_moved_has_the_turn_without_a_value(self, backend: Backend) -> None:
        jobs(backend, "aaa")
        moved = jobs(backend, "bbb", queue="mail")
        assert backend.operator.amend(moved, Amendment(queue="default")).done == tuple(moved)
        assert Counter(self._served(backend, 4)) == {"a": 2, "-": 2}

    def test_jobs_without_a_stored_value_are_found_behind_many_others(self, backend: Backend) -> None:
        jobs(backend, "a" * 200)
        put(backend)
        assert "-" in self._served(backend, 10)

    def test_priorities_come_first(self, backend: Backend) -> None:
        jobs(backend, "aab")
        jobs(backend, "aa", priority=1)
        assert self._served(backend, 5)[:2] == "aa"

    def test_a_queue_takes_its_turns_at_the_places_of_its_first_jobs(self, backend: Backend) -> None:
        old = jobs(backend, "aa")
        others = put_all(backend, *(draft(queue="mail") for _ in range(3)))
        new = jobs(backend, "b")
        taken = [self._take(backend)[0].id for _ in range(6)]
        assert taken == [old[0], new[0], old[1], *others]

    def test_no_slot_is_left_empty(self, backend: Backend) -> None:
        jobs(backend, "a" * 40 + "b")
        put(backend, queue="mail")
        assert len(self._take(backend, 50)) == 42

    def test_many_turns(self, backend: Backend) -> None:
        put_all(backend, *(draft(fair_key=f"tenant {number:03}") for number in range(120) for _ in range(3)))
        served = Counter(self._key(backend, one) for _ in range(60) for one in self._take(backend, 4))
        assert (len(served), max(served.values())) == (120, 2)

    def test_a_turn_whose_limit_is_used_up_is_passed_over_and_not_punished(self, backend: Backend) -> None:
        put_all(backend, *(draft(fair_key=key, concurrency_key=f'{{"tenant":"{key}"}}') for key in "aaaabbbbcccc"))
        limit = at_once(1, key="tenant")
        held = self._take(backend, 3, limits=(limit,))
        assert "".join(self._key(backend, one) for one in held) == "abc"
        assert self._take(backend, 3, limits=(limit,)) == []
        for one in held[1:] * 2:
            finish(backend, one)
            held = [*held, *self._take(backend, 1, limits=(limit,))]
        assert finish(backend, held[0])
        assert [self._key(backend, one) for one in self._take(backend, 2, limits=(limit,))] == ["a"]

    def test_a_turn_behind_many_full_keys(self, backend: Backend) -> None:
        keys = [f'{{"account":"{number % 4}"}}' for number in range(300)]
        put_all(backend, *(draft(fair_key="a", concurrency_key=key) for key in keys))
        limit = at_once(1, key="account")
        assert len(self._take(backend, 9, limits=(limit,))) == 4
        put(backend, fair_key="a", concurrency_key='{"account":"free"}')
        put(backend, fair_key="b", concurrency_key='{"account":"b"}')
        assert sorted(self._key(backend, one) for one in self._take(backend, 9, limits=(limit,))) == ["a", "b"]

    def test_limits_without_keys_and_rates_hold(self, backend: Backend) -> None:
        jobs(backend, "aaaaabbbbb")
        assert len(self._take(backend, 9, limits=(at_once(3),))) == 3
        assert len(self._take(backend, 9, limits=(at_once(9), rate(2, per=10.0)))) == 2
        cycle = backend.cycle("me", (), fair(5, None, at_once(9), rate(2, per=10.0)))
        assert (cycle.claims, cycle.next_due) == ((), timedelta(seconds=10))

    def test_a_released_job_counts(self, backend: Backend) -> None:
        jobs(backend, "aab")
        (first,) = self._take(backend)
        assert settle(backend, released(first)) == ()
        assert self._served(backend, 1) == "b"

    def test_paused_later_and_expired_jobs_stay(self, backend: Backend, clock: VirtualClock) -> None:
        jobs(backend, "a", delay=timedelta(seconds=60))
        (late,) = jobs(backend, "b", expires_at=clock.now() + timedelta(seconds=1))
        jobs(backend, "c", type="greet")
        backend.operator.pause(Scope.TYPE, "greet")
        clock.advance(2)
        assert self._take(backend, 9) == []
        assert job(backend, late).end_reason == "expired"
        clock.advance(60)
        assert self._served(backend, 1) == "a"

    # What operators see

    def test_place_of(self, backend: Backend) -> None:
        found = jobs(backend, "aaabbc")
        options = fair().queue_options["default"]
        assert self._served(backend, 1) == "a"
        place = backend.turns.place_of(job(backend, found[2]), options)
        assert (place.key, place.turns, place.jobs, place.is_capped) == ("a", 2, 1, False)
        place = backend.turns.place_of(job(backend, found[5]), options)
        assert (place.turns, place.jobs) == (1, 0)

    def test_shares(self, backend: Backend, clock: VirtualClock) -> None:
        jobs(backend, "aaaab")
        put_all(backend, draft(), draft())
        options = QueueOptions(fair="tenant", weights={"a": 2.0})
        taken = self._take(backend, 3, weights={"a": 2.0})
        assert finish(backend, taken[0])
        found = backend.turns.shares("default", options)
        assert {(one.key, one.weight, one.waiting, one.served) for one in found} == {
            ("a", 2.0, 3, 1),
            ("b", 1.0, 0, 1),
            ("", 1.0, 1, 1),
        }
        assert sum(one.running for one in found) == 2
        clock.advance(61)
        assert sum(one.served for one in backend.turns.shares("default", options)) == 0

    # Races

    def test_race_claim_claim_of_turns(self, backend: Backend) -> None:
        jobs(backend, "aabb")
        mine, yours = overlapping(
            backend,
            lambda: self._take(backend, 1),
            lambda: self._take(backend, 1, owner="you"),
        )
        taken = [*mine, *yours]
        taken += [] if len(taken) == 2 else self._take(backend, 1, owner="you")
        assert sorted(self._key(backend, one) for one in taken) == ["a", "b"]

    # Steps

    def _served(self, backend: Backend, count: int, at_once: int = 1, weights: dict[str, float] | None = None) -> str:
        """Claim jobs, and return their keys."""
        taken = [one for _ in range(count // at_once) for one in self._take(backend, at_once, weights=weights)]
        return "".join(self._key(backend, one) for one in taken)

    @staticmethod
    def _take(
        backend: Backend,
        limit: int = 1,
        owner: str = "me",
        weights: dict[str, float] | None = None,
        limits: tuple[Limit, ...] = (),
    ) -> list[Claim]:
        claims: list[Claim] = []
        while True:
            cycle = backend.cycle(owner, (), fair(limit - len(claims), weights, *limits))
            claims += cycle.claims
            if len(claims) == limit or cycle.next_due != timedelta(0):
                return claims

    @staticmethod
    def _key(backend: Backend, claim: Claim) -> str:
        return job(backend, claim.id).fair_key or "-"
