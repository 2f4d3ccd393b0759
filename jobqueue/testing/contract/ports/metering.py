"""Tests of the metrics, which stay exact no matter which worker adds to them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from jobqueue.backends.base import Backend
from jobqueue.policy.leases import settle_overdue
from jobqueue.policy.stretches import KEPT
from jobqueue.records import MOST_GROUPS, Lengths, MetricSum, OverdueLease, Scope, Settlement, Stretch, Tally
from jobqueue.testing.clock import NOON, VirtualClock
from jobqueue.testing.contract.harness import Contract, overlapping, put, take_one, together

MINUTE, TEN, HOUR = sorted(KEPT)
MUCH = Lengths({0: 1, 40: 2}, 3.5)


def tally_of(queue: str = "images", job_type: str = "resize", **values: Any) -> Tally:
    """Return a tally with the given values."""
    return Tally(queue, job_type, **values)


def counted(backend: Backend, span: int = MINUTE, **names: str) -> list[tuple[Any, ...]]:
    """Return the beginnings, lengths and completed attempts of the stretches."""
    found = backend.metrics.stretches(span, NOON - timedelta(days=60), **names)
    return [(one.begins_at, one.tally.queue, one.tally.type, one.tally.completed) for one in found]


class MeterContract(Contract):
    """Tests of stored metrics."""

    # Stretches

    def test_nothing_happened_at_first(self, backend: Backend) -> None:
        assert backend.metrics.stretches(MINUTE, NOON) == []
        assert [backend.metrics.totals(by, MINUTE, NOON) for by in Scope] == [[], []]

    def test_nothing_to_add_is_added(self, backend: Backend) -> None:
        assert backend.metrics.add(NOON, [])
        assert counted(backend) == []

    @pytest.mark.parametrize(("span", "begins_after"), [(MINUTE, 17 * 60), (TEN, 10 * 60), (HOUR, 0)])
    def test_what_is_added_counts_in_stretches_of_each_length(
        self, backend: Backend, span: int, begins_after: int
    ) -> None:
        said = tally_of(completed=5, retried=4, dead_lettered=3, stopped=2, lost=1, waited=MUCH, ran=Lengths({7: 9}, 1))
        assert backend.metrics.add(NOON + timedelta(minutes=17, seconds=59.9), [said])
        begins_at = NOON + timedelta(seconds=begins_after)
        assert backend.metrics.stretches(span, begins_at, "images", "resize") == [Stretch(begins_at, said)]
        assert backend.metrics.stretches(span, begins_at, "images") == [Stretch(begins_at, said._replace(type=""))]
        assert backend.metrics.stretches(span, begins_at) == [Stretch(begins_at, said._replace(queue="", type=""))]

    def test_what_is_added_later_adds_up(self, backend: Backend) -> None:
        backend.metrics.add(NOON, [tally_of(completed=1, waited=MUCH)])
        backend.metrics.add(NOON, [tally_of(completed=2, lost=1, waited=MUCH, ran=MUCH)])
        (stretch,) = backend.metrics.stretches(MINUTE, NOON, "images", "resize")
        both = Lengths({0: 2, 40: 4}, 7.0)
        assert stretch.tally == tally_of(completed=3, lost=1, waited=both, ran=MUCH)

    def test_queues_and_types_are_told_apart_and_all_together_is_their_sum(self, backend: Backend) -> None:
        backend.metrics.add(NOON, [tally_of(completed=1, ran=MUCH), tally_of("mail", completed=2, ran=MUCH)])
        backend.metrics.add(NOON, [tally_of(job_type="greet", completed=4)])
        assert counted(backend) == [(NOON, "", "", 7)]
        assert backend.metrics.stretches(MINUTE, NOON)[0].tally.ran == Lengths({0: 2, 40: 4}, 7.0)
        assert counted(backend, queue="images", job_type="greet") == [(NOON, "images", "greet", 4)]
        assert counted(backend, job_type="resize") == [(NOON, "", "resize", 3)]
        assert backend.metrics.stretches(MINUTE, NOON, job_type="resize")[0].tally.ran == Lengths({0: 2, 40: 4}, 7.0)
        assert counted(backend, job_type="nosuch") == []
        assert counted(backend, queue="mail", job_type="resize") == [(NOON, "mail", "resize", 2)]
        assert counted(backend, queue="mail", job_type="greet") == []

    def test_a_queue_as_a_whole_is_the_sum_of_its_types(self, backend: Backend) -> None:
        backend.metrics.add(NOON, [tally_of(completed=1, ran=MUCH), tally_of("mail", lost=5)])
        backend.metrics.add(NOON, [tally_of(job_type="greet", completed=4, waited=MUCH, ran=MUCH)])
        for span in KEPT:
            (stretch,) = backend.metrics.stretches(span, NOON, queue="images")
            both = Lengths({0: 2, 40: 4}, 7.0)
            assert stretch.tally == tally_of(job_type="", completed=5, waited=MUCH, ran=both)
        assert backend.metrics.stretches(MINUTE, NOON, queue="nosuch") == []

    def test_what_has_no_type_counts_for_its_queue_and_for_all_together(self, backend: Backend) -> None:
        backend.metrics.add(NOON, [tally_of(completed=1), tally_of(job_type="", completed=2)])
        assert counted(backend) == [(NOON, "", "", 3)]
        assert counted(backend, queue="images") == [(NOON, "images", "", 3)]
        assert [one.completed for one in backend.metrics.totals(Scope.QUEUE, MINUTE, NOON)] == [3]
        assert [one.completed for one in backend.metrics.totals(Scope.TYPE, MINUTE, NOON)] == [1]

    def test_what_has_neither_queue_nor_type_counts_for_all_together_alone(self, backend: Backend) -> None:
        backend.metrics.add(NOON, [tally_of(completed=1), tally_of("", "", completed=2)])
        assert counted(backend) == [(NOON, "", "", 3)]
        assert counted(backend, queue="images") == [(NOON, "images", "", 1)]
        assert [[one.completed for one in backend.metrics.totals(by, MINUTE, NOON)] for by in Scope] == [[1], [1]]

    def test_two_tallies_of_one_queue_and_type_add_up_too(self, backend: Backend) -> None:
        backend.metrics.add(NOON, [tally_of(completed=1), tally_of(completed=2)])
        assert counted(backend, job_type="resize") == [(NOON, "", "resize", 3)]

    def test_stretches_come_in_order_from_a_moment_on(self, backend: Backend) -> None:
        for minute in (3, 0, 61, 2):
            backend.metrics.add(NOON + timedelta(minutes=minute), [tally_of(completed=1)])
        minutes = [(one.begins_at - NOON) // timedelta(minutes=1) for one in backend.metrics.stretches(MINUTE, NOON)]
        assert minutes == [0, 2, 3, 61]
        late = backend.metrics.stretches(MINUTE, NOON + timedelta(minutes=2), "images")
        assert [(one.begins_at - NOON) // timedelta(minutes=1) for one in late] == [2, 3, 61]
        assert [row[3] for row in counted(backend, HOUR)] == [3, 1]

    def test_a_sweep_knows_of_which_queue_a_lease_was_that_ran_out(self, backend: Backend, clock: VirtualClock) -> None:
        put(backend, queue="mail")
        take_one(backend)
        clock.advance(61)
        seen = []

        def judge(overdue: OverdueLease) -> Settlement:
            seen.append((overdue.queue, overdue.type, overdue.company))
            return settle_overdue(overdue)

        backend.sweep(judge)
        clock.advance(backend.second_look)
        backend.sweep(judge)
        assert seen == [("mail", "resize", 0)]

    def test_of_too_many_kinds_in_one_stretch_the_rest_counts_for_all_together_alone(self, backend: Backend) -> None:
        many = [tally_of(f"queue-{number:03}", completed=1) for number in range(MOST_GROUPS + 3)]
        assert backend.metrics.add(NOON, many)
        assert backend.metrics.add(NOON + timedelta(minutes=1), [tally_of("another", completed=1), many[0]])
        assert [[row[3] for row in counted(backend, span, job_type="resize")] for span in sorted(KEPT)] == [
            [MOST_GROUPS, 2],
            [MOST_GROUPS + 1],
            [MOST_GROUPS + 1],
        ]
        assert [row[3] for row in counted(backend)] == [MOST_GROUPS + 3, 2]
        assert [row[3] for row in counted(backend, HOUR)] == [MOST_GROUPS + 5]
        assert counted(backend, HOUR, queue="queue-000") == [(NOON, "queue-000", "", 2)]
        assert counted(backend, HOUR, queue="another") == []

    def test_of_too_many_types_in_one_stretch_the_rest_counts_for_their_queue(self, backend: Backend) -> None:
        assert backend.metrics.add(NOON, [tally_of("mail", completed=1)])
        assert backend.metrics.add(
            NOON, [tally_of(job_type=f"type-{number:03}", lost=1) for number in range(MOST_GROUPS)]
        )
        assert len(backend.metrics.totals(Scope.TYPE, MINUTE, NOON)) == MOST_GROUPS
        assert [one.lost for one in backend.metrics.totals(Scope.QUEUE, MINUTE, NOON)] == [MOST_GROUPS, 0]
        assert [one.tally.lost for one in backend.metrics.stretches(MINUTE, NOON, "images")] == [MOST_GROUPS]

    # Shares

    def test_lengths_are_summed_up_by_type(self, backend: Backend) -> None:
        for queue, kind in (("images", "resize"), ("mail", "resize"), ("mail", "greet")):
            backend.metrics.add(NOON, [tally_of(queue, kind, completed=1, waited=MUCH, ran=Lengths({7: 1}, 0.5))])
        backend.metrics.add(NOON - timedelta(hours=1), [tally_of(waited=MUCH)])
        twice = Lengths({0: 2, 40: 4}, 7.0), Lengths({7: 2}, 1.0)
        assert backend.metrics.lengths(MINUTE, NOON, ["resize"]) == {"resize": twice}
        assert backend.metrics.lengths(MINUTE, NOON, ["rare", "greet"]) == {
            "rare": (Lengths(), Lengths()),
            "greet": (MUCH, Lengths({7: 1}, 0.5)),
        }

    def test_parts_are_sums_of_stretches_by_type_or_by_queue(self, backend: Backend) -> None:
        backend.metrics.add(NOON, [tally_of(completed=3, dead_lettered=1, ran=Lengths({1: 3, 2: 1}, 10.0))])
        later = NOON + timedelta(minutes=5)
        backend.metrics.add(later, [tally_of(completed=1, lost=2, ran=Lengths({1: 1}, 5.0))])
        backend.metrics.add(
            later, [tally_of("mail", "rare", waited=MUCH), tally_of("mail", "greet", stopped=1, retried=4)]
        )
        for span in KEPT:
            assert backend.metrics.totals(Scope.TYPE, span, NOON) == [
                MetricSum("greet", 0, 4, 0, 1, 0, ran=0, ran_for=0.0),
                MetricSum("rare", 0, 0, 0, 0, 0, ran=0, ran_for=0.0),
                MetricSum("resize", 4, 0, 1, 0, 2, ran=5, ran_for=15.0),
            ]
            assert backend.metrics.totals(Scope.QUEUE, span, NOON) == [
                MetricSum("images", 4, 0, 1, 0, 2, ran=5, ran_for=15.0),
                MetricSum("mail", 0, 4, 0, 1, 0, ran=0, ran_for=0.0),
            ]

    def test_parts_are_of_a_window_a_queue_and_a_type(self, backend: Backend) -> None:
        backend.metrics.add(
            NOON, [tally_of(completed=1), tally_of("mail", completed=2), tally_of("mail", "greet", lost=1)]
        )

        def found(by: Scope, **names: str) -> list[tuple[str, int]]:
            return [(one.name, one.completed) for one in backend.metrics.totals(by, MINUTE, NOON, **names)]

        assert found(Scope.TYPE, queue="mail") == [("greet", 0), ("resize", 2)]
        assert found(Scope.QUEUE, queue="mail") == [("mail", 2)]
        assert found(Scope.TYPE, job_type="resize") == [("resize", 3)]
        assert found(Scope.QUEUE, job_type="resize") == [("images", 1), ("mail", 2)]
        assert found(Scope.TYPE, queue="mail", job_type="resize") == [("resize", 2)]
        assert found(Scope.QUEUE, queue="mail", job_type="resize") == [("mail", 2)]
        assert backend.metrics.totals(Scope.TYPE, MINUTE, NOON + timedelta(minutes=1)) == []

    # Races

    def test_race_tally_tally(self, backend: Backend) -> None:
        assert backend.metrics.add(NOON, [tally_of(completed=1)])  # so that the rows exist
        mine, yours = overlapping(
            backend,
            lambda: backend.metrics.add(NOON, [tally_of(completed=10)]),
            lambda: backend.metrics.add(NOON, [tally_of(completed=100)]),
        )
        assert mine
        assert counted(backend) == [(NOON, "", "", 11 + 100 * yours)]
        assert counted(backend, HOUR, queue="images") == [(NOON, "images", "", 11 + 100 * yours)]
        assert counted(backend, HOUR, job_type="resize") == [(NOON, "", "resize", 11 + 100 * yours)]

    def test_race_many_tallies(self, backend: Backend) -> None:
        kinds = ["greet", "rare", "resize"]

        def adding(order: list[str]) -> None:
            for turn in range(12):
                moment = NOON + timedelta(seconds=20 * turn)
                tallies = [tally_of(job_type=kind, completed=1, ran=MUCH) for kind in order]
                while not backend.metrics.add(moment, tallies):
                    pass

        together(*(lambda order=order: adding(order) for order in (kinds, kinds[::-1], kinds, kinds[::-1])))
        assert counted(backend) == [(NOON + timedelta(minutes=minute), "", "", 36) for minute in range(4)]
        (whole,) = backend.metrics.stretches(HOUR, NOON)
        assert (whole.tally.completed, whole.tally.ran) == (144, Lengths({0: 144, 40: 288}, 504.0))
        assert [row[3] for row in counted(backend, TEN, queue="images")] == [144]
        assert [one.completed for one in backend.metrics.totals(Scope.TYPE, TEN, NOON)] == [48, 48, 48]

    def test_race_tally_sample(self, backend: Backend) -> None:
        put(backend, queue="images")
        assert backend.metrics.add(NOON, [tally_of(completed=1)])
        overlapping(
            backend, lambda: backend.metrics.add(NOON, [tally_of(completed=1)]), lambda: backend.metrics.sample(NOON)
        )
        assert backend.metrics.sample(NOON)
        assert [(one.tally.completed, one.queued) for one in backend.metrics.stretches(MINUTE, NOON)] == [(2, 1)]
