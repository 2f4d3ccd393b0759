"""Retention: deletes the jobs that the rules of the settings don't keep, a step at a time."""

from __future__ import annotations

import logging
from datetime import timedelta

from jobqueue import retention
from jobqueue.clock import SYSTEM
from jobqueue.retention.walk import Walk
from jobqueue.worker.supervisor.context import WorkerContext
from jobqueue.worker.supervisor.duties.duty import Duty

logger = logging.getLogger("jobqueue")

#: How many times as long as a step the pause after it is, while jobs run and while none does.
BUSY_PAUSE, IDLE_PAUSE = 20, 4
#: How many times as long as a whole walk the pause after it is: a large table is not read all the time.
WALK_PAUSE = 100
#: How long orders that ended, and errors that no job has, are remembered, and the seconds between two looks at them.
BESIDE_KEPT = timedelta(days=90), timedelta(days=180)
BESIDE_EVERY = 3_600.0


class Prune(Duty):
    """Walks over the table, and begins again after a pause. Another worker that takes over begins a walk of its own."""

    name = "prune"
    every = 60.0
    is_elected = True

    def __init__(self, context: WorkerContext) -> None:
        super().__init__(context)
        self._walk: Walk | None = None
        self._took = self._walk_at = self._beside_at = 0.0

    def act(self) -> float:
        """Do one step of a walk, if it is time for one."""
        began = SYSTEM.monotonic()
        if self._walk is None:
            if began < self._walk_at:
                return self._compact()
            self._walk, self._took = Walk(self.context.backend, retention.rules()), 0.0
        walk = self._walk
        if not walk.is_over:
            walk.step()
        took = SYSTEM.monotonic() - began
        self._took += took
        if walk.is_over:
            return self._end(walk)
        return self._pause(took)

    def _pause(self, took: float) -> float:
        return took * (BUSY_PAUSE if len(self.context.claims) else IDLE_PAUSE)

    def _compact(self) -> float:
        """Give space back while nothing runs. Return the seconds until there is something to do."""
        began = SYSTEM.monotonic()
        if not len(self.context.claims) and self.context.backend.retention.compact():
            return self._pause(SYSTEM.monotonic() - began)
        return max(0.0, self._walk_at - began)

    def _end(self, walk: Walk) -> float:
        self._walk = None
        self._walk_at = SYSTEM.monotonic() + max(self.every, WALK_PAUSE * self._took)
        count = sum(walk.pruned.values())
        if count:
            logger.info("Pruned %d jobs that ended long ago, in %.1f s of work", count, self._took)
        if self._beside_at <= SYSTEM.monotonic() and not self.context.backend.retention.prune_beside(*BESIDE_KEPT):
            self._beside_at = SYSTEM.monotonic() + BESIDE_EVERY
        return self._compact()
