"""The samples of queues with a capacity, by which producers see how full they are."""

from __future__ import annotations

from jobqueue import queues
from jobqueue.clock import SYSTEM
from jobqueue.records import MOST_GROUPS
from jobqueue.records.gauge import SAMPLE_EVERY
from jobqueue.worker.supervisor.duties.duty import Duty

#: Counting takes at most this share of a supervisor's time.
_SHARE = 0.05


class Gauges(Duty):
    """Counts the jobs of queues with a capacity every second. Each worker asks, and the backend lets one count."""

    name = "gauges"
    every = SAMPLE_EVERY.total_seconds()

    def act(self) -> float:
        """Count the queues that the settings name, and of those that patterns stand for, the ones with jobs."""
        if not queues.are_bounded():
            return float("inf")
        began, backend = SYSTEM.monotonic(), self.context.backend
        names = {*queues.named(), *backend.jobs.queues(MOST_GROUPS), *(one.queue for one in backend.gauges.all())}
        backend.gauges.sample(queues.capacities(names), SAMPLE_EVERY / 2)
        return max(self.every, (SYSTEM.monotonic() - began) / _SHARE)
