"""Tests of the counters, which never fall and count each attempt once."""

from __future__ import annotations

from datetime import timedelta

from jobqueue.backends.base import Backend
from jobqueue.policy.counters import FORGOTTEN_AFTER
from jobqueue.policy.stretches import KEPT
from jobqueue.records import MOST_GROUPS, Lengths, Tally
from jobqueue.testing.clock import NOON, VirtualClock
from jobqueue.testing.contract.harness import Contract, together
from jobqueue.testing.contract.ports.metering import MUCH, tally_of


def completed(backend: Backend) -> dict[tuple[str, str], int]:
    """Return how many attempts completed, by queue and type."""
    return {(one.queue, one.type): one.completed for one in backend.metrics.counters()}


class CounterContract(Contract):
    """Tests of the sums that outlive the stretches."""

    def test_there_are_no_counters_at_first(self, backend: Backend) -> None:
        assert backend.metrics.counters() == []

    def test_a_counter_has_all_that_was_added(self, backend: Backend) -> None:
        tries = Lengths({1: 4, 3: 1}, 7)
        said = tally_of(completed=5, retried=4, dead_lettered=3, stopped=2, lost=1, waited=MUCH, ran=MUCH)
        backend.metrics.add(NOON, [said._replace(attempts=tries)])
        backend.metrics.add(NOON + timedelta(days=2), [tally_of(completed=1, ran=MUCH, attempts=tries)])
        assert backend.metrics.counters() == [
            said._replace(completed=6, ran=Lengths({0: 2, 40: 4}, 7.0), attempts=Lengths({1: 8, 3: 2}, 14))
        ]

    def test_no_attempt_is_counted_twice(self, backend: Backend) -> None:
        backend.metrics.add(NOON, [tally_of(completed=1), tally_of("mail", completed=2), tally_of(completed=4)])
        assert completed(backend) == {("images", "resize"): 5, ("mail", "resize"): 2}
        backend.metrics.add(NOON, [tally_of("mail", "", completed=8), tally_of("", "", completed=16)])
        assert completed(backend) == {("", ""): 16, ("images", "resize"): 5, ("mail", ""): 8, ("mail", "resize"): 2}

    def test_types_without_room_count_together(self, backend: Backend) -> None:
        for begin in range(0, MOST_GROUPS + 25, 25):
            numbers = range(begin, begin + 25)
            assert backend.metrics.add(NOON, [tally_of(job_type=f"type-{one:03}", completed=1) for one in numbers])
        assert backend.metrics.add(NOON, [tally_of(job_type="type-000", completed=1), tally_of("mail", completed=1)])
        found = completed(backend)
        assert len(found) == MOST_GROUPS + 2
        assert (found["images", ""], found["images", "type-000"], found["mail", ""]) == (25, 2, 1)
        assert sum(found.values()) == MOST_GROUPS + 25 + 2

    def test_queues_without_room_count_together(self, backend: Backend) -> None:
        for begin in range(0, MOST_GROUPS + 25, 25):
            numbers = range(begin, begin + 25)
            assert backend.metrics.add(NOON, [Tally(f"queue-{one:03}", "", completed=1) for one in numbers])
        found = completed(backend)
        assert (len(found), found["", ""]) == (MOST_GROUPS + 1, 25)

    def test_counters_outlive_the_stretches(self, backend: Backend, clock: VirtualClock) -> None:
        backend.metrics.add(NOON, [tally_of(completed=1)])
        for _ in range(4):
            clock.advance(9 * 86_400)
            backend.metrics.add(clock.now(), [tally_of(completed=1)])
            backend.metrics.sample(clock.now())
        assert backend.metrics.stretches(max(KEPT), NOON - timedelta(days=1))[0].begins_at > NOON
        assert completed(backend) == {("images", "resize"): 5}

    def test_a_counter_that_no_longer_grows_is_deleted(self, backend: Backend, clock: VirtualClock) -> None:
        backend.metrics.add(NOON, [tally_of(completed=1), tally_of("mail", completed=1)])
        clock.advance(FORGOTTEN_AFTER.total_seconds())
        backend.metrics.add(clock.now(), [tally_of(completed=1)])
        backend.metrics.sample(clock.now())
        assert completed(backend) == {("images", "resize"): 2, ("mail", "resize"): 1}
        clock.advance(1)
        backend.metrics.sample(clock.now() + timedelta(minutes=1))
        assert completed(backend) == {("images", "resize"): 2}

    def test_race_many_counters(self, backend: Backend) -> None:
        def adding(kinds: list[str]) -> None:
            for _ in range(12):
                while not backend.metrics.add(NOON, [tally_of(job_type=kind, completed=1, ran=MUCH) for kind in kinds]):
                    pass

        together(*(lambda kinds=kinds: adding(kinds) for kinds in (["greet", "resize"], ["resize", "greet"])))
        assert completed(backend) == {("images", "greet"): 24, ("images", "resize"): 24}
        assert [one.ran for one in backend.metrics.counters()] == [Lengths({0: 24, 40: 48}, 84.0)] * 2
