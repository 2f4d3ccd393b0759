"""The upkeep of a worker's own processes: their memory, and orphans that it inherited."""

from __future__ import annotations

import contextlib
import logging
import os

from jobqueue.worker.memory import give_back, resident
from jobqueue.worker.supervisor.context import WorkerContext
from jobqueue.worker.supervisor.duties.duty import Duty

logger = logging.getLogger("jobqueue")

#: After this many jobs there is memory to return.
BUSY = 1_000


class Upkeep(Duty):
    """Replaces executors that use too much memory, gives memory back after a busy time, and reaps orphans."""

    name = "upkeep"
    every = 2.0

    def __init__(self, context: WorkerContext) -> None:
        super().__init__(context)
        self._rested_after = 0

    def act(self) -> None:
        """Look at the processes once."""
        self._renew_executors()
        self._rest()
        if self.context.options.processes:  # otherwise they may be the children of handlers
            _reap_orphans()

    def _renew_executors(self) -> None:
        """Replace executors that use too much memory."""
        most = self.context.options.max_rss
        if most is None:
            return
        for link in [one for one in self.context.executors.links if not one.leaving]:
            size = 0 if link.pid is None else resident(link.pid)
            if size > most:
                logger.info("Executor %s is replaced: it uses %s MB", link.pid, size)
                self.context.executors.retire(link)
                self.context.executors.fill()

    def _rest(self) -> None:
        """Return the memory of a busy time to the system, because a worker is idle for most of the day."""
        context = self.context
        if len(context.claims) or context.database.is_lost or context.claims.begun < self._rested_after + BUSY:
            return
        self._rested_after = context.claims.begun
        context.backend.rest()
        give_back()


def _reap_orphans() -> None:
    """Reap orphaned programs if this is the first process of its container, which inherits them."""
    if os.getpid() != 1:
        return
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
