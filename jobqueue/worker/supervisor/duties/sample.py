"""The sample: stores the depth of each queue and type once a minute, and deletes old metrics."""

from __future__ import annotations

from jobqueue.policy.stretches import begin_of
from jobqueue.worker.supervisor.duties.duty import Duty

#: Seconds until the next try if other sessions had locked the rows.
SAMPLE_AGAIN = 10.0


class Sample(Duty):
    """Samples the depth at the beginning of each minute of the database's clock."""

    name = "sample"
    every = 60.0
    is_elected = True

    def act(self) -> float | None:
        """Sample this minute."""
        backend = self.context.backend
        now = backend.now()
        if not backend.metrics.sample(now):
            return SAMPLE_AGAIN
        return 60.0 - (now - begin_of(now, 60)).total_seconds()
