"""The deletion of history whose job another program has deleted, a page at a time."""

from __future__ import annotations

from jobqueue.backends.sql.orphans import Orphans
from jobqueue.worker.supervisor.context import WorkerContext
from jobqueue.worker.supervisor.duties.duty import Duty


class OrphanedHistory(Duty):
    """Reads a page of the history once a minute, and deletes attempts without a job."""

    name = "orphaned history"
    every = 60.0
    is_elected = True

    def __init__(self, context: WorkerContext) -> None:
        super().__init__(context)
        self._orphans = Orphans(context.backend)

    def act(self) -> None:
        """Read the next page."""
        self._orphans.prune()
