"""Tests of the depth: limited counts of queued jobs, and stored samples."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from jobqueue.backends.base import Backend
from jobqueue.policy.stretches import KEPT
from jobqueue.records import Depth, Scope
from jobqueue.testing.clock import NOON, VirtualClock
from jobqueue.testing.contract.harness import Contract, draft, finish, put, put_all, take, take_one
from jobqueue.testing.contract.ports.metering import HOUR, MINUTE, MUCH, tally_of


def met(backend: Backend, span: int = MINUTE, **names: str) -> list[tuple[Any, ...]]:
    """Return the depth samples of stretches."""
    return [(one.queued, one.in_progress, one.oldest) for one in backend.metrics.stretches(span, NOON, **names)]


class SampleContract(Contract):
    """Tests of the current depth and its samples."""

    # Depth

    def test_nothing_waits_at_first(self, backend: Backend) -> None:
        assert backend.metrics.depths() == []

    def test_depths_tell_what_waits_and_what_runs_by_queue_and_type(
        self, backend: Backend, clock: VirtualClock
    ) -> None:
        put(backend, "greet", queue="mail", priority=1)
        assert take_one(backend).type == "greet"
        put_all(backend, draft(queue="mail", priority=2), draft(queue="mail", priority=9))
        clock.advance(30)
        put_all(backend, draft(queue="mail"), draft("rare", delay=timedelta(minutes=1)))
        assert backend.metrics.depths() == [
            Depth("default", "rare", 1, False, 0, None, 0, False),
            Depth("mail", "greet", 0, False, 0, None, 1, False),
            Depth("mail", "resize", 3, False, 3, NOON, 0, False),
        ]

    @pytest.mark.parametrize(("scope", "name"), [(Scope.QUEUE, "mail"), (Scope.TYPE, "greet")])
    def test_depths_tell_what_is_paused(self, backend: Backend, scope: Scope, name: str) -> None:
        put_all(backend, draft("greet", queue="mail"), draft("resize"))
        backend.operator.pause(scope, name)
        assert [(one.type, one.paused) for one in backend.metrics.depths()] == [("resize", False), ("greet", True)]

    @pytest.mark.parametrize(
        ("due", "later", "told"),
        [
            (3, 0, (3, False, 3)),
            (4, 0, (3, True, 3)),
            (2, 1, (3, False, 2)),
            (2, 2, (3, True, 2)),
            (0, 9, (3, True, 0)),
        ],
    )
    def test_depths_are_counted_up_to_a_cap(
        self, backend: Backend, due: int, later: int, told: tuple[int, bool, int]
    ) -> None:
        put_all(backend, *(draft(priority=1 + number % 10) for number in range(due)))
        put_all(backend, *(draft(priority=1 + number % 10, delay=timedelta(hours=1)) for number in range(later)))
        (found,) = backend.metrics.depths(cap=3)
        assert (found.queued, found.capped, found.due) == told

    def test_the_oldest_is_found_behind_a_cap(self, backend: Backend, clock: VirtualClock) -> None:
        put(backend, priority=9)
        clock.advance(60)
        put_all(backend, *(draft(priority=1) for _ in range(5)))
        assert [one.oldest_due_at for one in backend.metrics.depths(cap=3)] == [NOON]

    def test_depths_are_told_of_so_many_queues_and_types(self, backend: Backend) -> None:
        put_all(backend, *(draft(queue=f"queue-{number}") for number in range(5)))
        assert [one.queue for one in backend.metrics.depths(most=3)] == ["queue-0", "queue-1", "queue-2"]

    # Samples

    def test_a_sample_notes_what_waits_and_what_runs(self, backend: Backend, clock: VirtualClock) -> None:
        put(backend, queue="images")
        put_all(backend, draft("greet", queue="mail", priority=1), draft("greet", queue="mail"))
        take(backend, 1)
        clock.advance(90)
        assert backend.metrics.sample(NOON + timedelta(seconds=90))
        for span in KEPT:
            since = NOON + timedelta(seconds=90 // span * span)
            noted = [
                (one.begins_at, one.queued, one.in_progress, one.oldest)
                for one in backend.metrics.stretches(span, NOON)
            ]
            assert noted == [(since, 2, 1, 90.0)]
            assert met(backend, span, queue="mail", job_type="greet") == [(1, 1, 90.0)]
            assert met(backend, span, job_type="resize") == [(1, 0, 90.0)]

    def test_a_sample_notes_the_depth_of_a_queue_as_a_whole(self, backend: Backend, clock: VirtualClock) -> None:
        put_all(backend, draft("greet", queue="mail", priority=1), draft(queue="images"))
        clock.advance(30)
        put_all(backend, *(draft(kind, queue="mail") for kind in ("resize", "greet", "rare")))
        take(backend, 1)
        clock.advance(60)
        assert backend.metrics.sample(clock.now())
        for span in KEPT:
            assert met(backend, span, queue="mail") == [(3, 1, 60.0)]
            assert met(backend, span, queue="images") == [(1, 0, 90.0)]
            assert met(backend, span, job_type="resize") == [(2, 0, 90.0)]

    def test_a_sample_of_nothing_notes_that_nothing_was_there(self, backend: Backend) -> None:
        assert backend.metrics.sample(NOON)
        assert met(backend) == [(0, 0, None)]
        assert met(backend, queue="default") == []

    def test_one_sample_a_minute_is_enough(self, backend: Backend) -> None:
        assert backend.metrics.sample(NOON)
        put(backend)
        assert backend.metrics.sample(NOON + timedelta(seconds=59))
        assert met(backend) == [(0, 0, None)]
        assert backend.metrics.sample(NOON + timedelta(seconds=60))
        assert met(backend) == [(0, 0, None), (1, 0, 0.0)]
        assert met(backend, HOUR) == [(1, 0, 0.0)]

    def test_what_is_gone_by_the_next_sample_is_noted_as_gone(self, backend: Backend, clock: VirtualClock) -> None:
        put(backend, queue="mail")
        backend.metrics.sample(NOON)
        claim = take_one(backend)
        clock.advance(60)
        backend.metrics.sample(clock.now())
        assert met(backend, HOUR, queue="mail") == [(0, 1, None)]
        assert finish(backend, claim)
        clock.advance(60)
        backend.metrics.sample(clock.now())
        assert met(backend, HOUR, queue="mail") == [(0, 0, None)]
        assert met(backend, queue="mail") == [(1, 0, 0.0), (0, 1, None)]

    def test_what_happened_and_what_was_met_leave_each_other_alone(self, backend: Backend) -> None:
        put(backend, queue="images")
        backend.metrics.add(NOON, [tally_of(completed=1, ran=MUCH)])
        backend.metrics.sample(NOON)
        backend.metrics.add(NOON, [tally_of(completed=1, ran=MUCH)])
        for names in ({}, {"queue": "images"}):
            (stretch,) = backend.metrics.stretches(MINUTE, NOON, **names)
            assert (stretch.tally.completed, stretch.tally.ran.number, stretch.queued) == (2, 6, 1)

    @pytest.mark.parametrize("span", sorted(KEPT))
    def test_figures_are_forgotten_in_time_and_not_before(
        self, backend: Backend, clock: VirtualClock, span: int
    ) -> None:
        backend.metrics.add(NOON, [tally_of(completed=1)])
        for after, left in ((timedelta(0), 1), (timedelta(seconds=span), 0)):
            clock.advance(KEPT[span] + after - (clock.now() - NOON))
            assert backend.metrics.sample(clock.now())
            assert len(backend.metrics.stretches(span, NOON, "images")) == left

    def test_samples_tell_how_many_jobs_queues_have_shed(self, backend: Backend, clock: VirtualClock) -> None:
        put(backend, queue="mail")
        backend.gauges.add_shed("mail", 3)
        backend.gauges.add_shed("empty", 2)
        assert backend.metrics.sample(clock.now())
        for names, number in (({"queue": "mail"}, 3), ({"queue": "empty"}, 2), ({}, 5)):
            assert [one.shed for one in backend.metrics.stretches(MINUTE, NOON, **names)] == [number]
        assert [one.shed for one in backend.metrics.stretches(MINUTE, NOON, job_type="resize")] == [None]
