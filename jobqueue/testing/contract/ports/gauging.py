"""Tests of the gauges of queues with a capacity."""

from __future__ import annotations

from datetime import timedelta

from jobqueue.backends.base import Backend
from jobqueue.records.gauge import Gauge
from jobqueue.testing.clock import NOON, VirtualClock
from jobqueue.testing.contract.harness import Contract, draft, put_all, take, together

SECOND = timedelta(seconds=1)


class GaugeContract(Contract):
    """Tests of samples and of the count of shed jobs."""

    def test_a_queue_without_a_sample_has_an_empty_gauge(self, backend: Backend) -> None:
        assert backend.gauges.read("mail") == Gauge("mail", 0, None, 0, None)
        assert backend.gauges.all() == []

    def test_a_sample_counts_queued_jobs_up_to_the_capacity(self, backend: Backend, clock: VirtualClock) -> None:
        later = {"delay": timedelta(hours=1), "priority": 9}
        put_all(backend, *(draft(queue="mail") for _ in range(4)), draft("greet", queue="mail", **later), draft())
        take(backend, 1, queues=frozenset({"mail"}))
        backend.gauges.sample({"mail": 10, "other": 10}, SECOND)
        assert backend.gauges.read("mail") == Gauge("mail", 4, timedelta(0))
        assert backend.gauges.read("other") == Gauge("other", 0, timedelta(0))
        clock.advance(2 * SECOND)
        backend.gauges.sample({"mail": 3}, SECOND)
        assert [(one.queue, one.queued, one.age) for one in backend.gauges.all()] == [
            ("mail", 3, timedelta(0)),
            ("other", 0, 2 * SECOND),
        ]

    def test_a_young_sample_is_not_repeated(self, backend: Backend, clock: VirtualClock) -> None:
        backend.gauges.sample({"mail": 10}, SECOND)
        put_all(backend, draft(queue="mail"))
        clock.advance(SECOND / 2)
        backend.gauges.sample({"mail": 10}, SECOND)
        assert backend.gauges.read("mail") == Gauge("mail", 0, SECOND / 2)

    def test_a_sample_of_a_clock_that_was_ahead_is_repeated(self, backend: Backend, clock: VirtualClock) -> None:
        backend.gauges.sample({"mail": 10}, SECOND)
        put_all(backend, draft(queue="mail"))
        clock.advance(-timedelta(days=1))
        assert backend.gauges.read("mail").age == timedelta(days=1)
        backend.gauges.sample({"mail": 10}, SECOND)
        assert backend.gauges.read("mail") == Gauge("mail", 1, timedelta(0))

    def test_shed_jobs_add_up_beside_the_samples(self, backend: Backend, clock: VirtualClock) -> None:
        backend.gauges.add_shed("mail", 3)
        backend.gauges.sample({"mail": 10}, SECOND)
        clock.advance(SECOND)
        backend.gauges.add_shed("mail", 4)
        assert backend.gauges.read("mail") == Gauge("mail", 0, SECOND, 7, NOON + SECOND)

    def test_race_shed_shed(self, backend: Backend) -> None:
        def shed() -> None:
            for _ in range(10):
                backend.gauges.add_shed("mail", 1)

        together(*[shed] * 4)
        assert backend.gauges.read("mail").shed == 40
