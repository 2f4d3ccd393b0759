"""The gauges of queues with a capacity, in memory."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from jobqueue.backends.memory.tables import MemoryTables
from jobqueue.backends.ports.gauges import Gauges
from jobqueue.records.gauge import Gauge
from jobqueue.states import JobStatus


class MemoryGauges(Gauges):
    """Keeps samples and sheds under the lock of the tables."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables
        self._samples: dict[str, tuple[int, datetime]] = {}
        self._sheds: dict[str, tuple[int, datetime]] = {}

    def read(self, queue: str) -> Gauge:
        with self._tables.lock:
            queued, sampled_at = self._samples.get(queue, (0, None))
            shed, shed_at = self._sheds.get(queue, (0, None))
            age = None if sampled_at is None else abs(self._tables.now() - sampled_at)
            return Gauge(queue, queued, age, shed, shed_at)

    def all(self) -> list[Gauge]:
        return [self.read(queue) for queue in sorted(self._samples.keys() | self._sheds.keys())]

    def sample(self, capacities: Mapping[str, int], every: timedelta) -> None:
        with self._tables.lock:
            now = self._tables.now()
            queued = [row.queue for row in self._tables.jobs.values() if row.status is JobStatus.QUEUED]
            for queue, most in capacities.items():
                if queue not in self._samples or abs(now - self._samples[queue][1]) >= every:
                    self._samples[queue] = (min(queued.count(queue), most), now)

    def add_shed(self, queue: str, number: int) -> None:
        with self._tables.lock:
            self._sheds[queue] = (self.read(queue).shed + number, self._tables.now())
