"""The port of the gauges of queues with a capacity. A backend may keep the default, whose queues have no gauges."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from jobqueue.records.gauge import Gauge


class Gauges:
    """Keeps how many jobs wait in queues with a capacity, and how many were shed.

    Workers write samples, and producers read them. No producer counts jobs or waits for a lock.
    """

    def read(self, queue: str) -> Gauge:
        """Read the gauge of a queue, at a cost that doesn't depend on the number of jobs."""
        return Gauge(queue)

    def all(self) -> list[Gauge]:
        """Read all gauges, by queue."""
        return []

    def sample(self, capacities: Mapping[str, int], every: timedelta) -> None:
        """Count the queued jobs of queues up to their capacities, and store the counts.

        Queues whose sample is younger than ``every`` are left out: another worker counted them.
        """

    def add_shed(self, queue: str, number: int) -> None:
        """Add to the number of shed jobs of a queue."""
