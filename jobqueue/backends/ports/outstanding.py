"""The port that reads queued and running jobs, for questions about all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod

from jobqueue.records.outstanding import Behind, QueuedJob, RunningJob


class OutstandingReader(ABC):
    """Reads queued and running jobs. The cost depends on the limit, not on the number of jobs."""

    @abstractmethod
    def running(self, limit: int) -> list[RunningJob]:
        """List running jobs, those first whose leases end first."""

    @abstractmethod
    def queued(self, limit: int, after: Behind | None = None) -> list[QueuedJob]:
        """Read a page of queued jobs in the order of queue, type, priority, due time and id, starting behind a place.

        A caller that goes on from the place of the last job finds each job that was queued and unchanged all the time.
        No transaction is held from one page to the next.
        """
