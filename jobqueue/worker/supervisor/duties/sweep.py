"""The sweep: ends expired leases, and queued jobs past their expiry."""

from __future__ import annotations

import logging

from jobqueue.policy.leases import settle_overdue
from jobqueue.records import ClaimKey, OverdueLease, Settlement
from jobqueue.worker.supervisor.duties.duty import Duty

logger = logging.getLogger("jobqueue")


class Sweep(Duty):
    """Sweeps. Every worker does, because on SQLite the same worker must find a lease expired twice."""

    name = "sweep"
    every = 30.0

    def act(self) -> float | None:
        """Sweep once. Return the seconds to the next sweep if it should come early."""
        context, found = self.context, dict[ClaimKey, OverdueLease]()

        def judge(overdue: OverdueLease) -> Settlement:
            found[overdue.id, overdue.fence] = overdue
            return settle_overdue(overdue)

        sweep = context.backend.sweep(judge)
        if sweep.ended:
            context.metrics.swept((found[one.claim], one) for one in sweep.ended)
            if context.backend.book:
                context.backend.wake()  # the slots of their limits are free
            context.events.tell([context.events.swept(one, found[one.claim].type) for one in sweep.ended])
        if sweep.expired:
            logger.warning("Ended %d jobs that were still queued when they expired", len(sweep.expired))
        return context.backend.second_look.total_seconds() if sweep.look_again else None
