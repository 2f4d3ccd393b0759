"""The heartbeat: a worker reports that it is up, and hears what operators ask of it."""

from __future__ import annotations

import logging
import os
import socket
from itertools import islice

from jobqueue.clock import SYSTEM
from jobqueue.records import WorkerRecord, WorkerRequest, WorkerState
from jobqueue.records.worker import NEWS_EVERY
from jobqueue.version import __version__
from jobqueue.worker.supervisor.context import WorkerContext
from jobqueue.worker.supervisor.duties.duty import Duty

logger = logging.getLogger("jobqueue")

#: How many jobs that were left out a worker reports.
LEFT_OUT_TOLD = 20


class Heartbeat(Duty):
    """Stores in the registry that this worker is up, and how busy it is."""

    name = "heartbeat"
    every = NEWS_EVERY.total_seconds()

    def __init__(self, context: WorkerContext) -> None:
        super().__init__(context)
        self._started_at = SYSTEM.now()

    def act(self) -> float | None:
        """Report, and hear what an operator asks. What changed is reported at once."""
        context, record = self.context, self._record()
        if context.lock:
            context.lock.touch()
        request = context.backend.workers.enlist(record)
        if request == context.request:
            return None
        self._obey(request)
        return 0.0

    def _record(self) -> WorkerRecord:
        context, options = self.context, self.context.options
        return WorkerRecord(
            owner=context.owner,
            name=options.name or context.owner,
            host=socket.gethostname()[:255],
            pid=os.getpid(),
            version=__version__,
            started_at=self._started_at,
            seen_at=self._started_at,
            state=self._state(),
            processes=options.processes,
            slots=max(1, options.processes) * options.concurrency,
            busy=len(context.claims.running),
            queues=None if options.queues is None else tuple(sorted(options.queues)),
            types=tuple(sorted(context.types)),
            left_out=dict(islice(context.backend.left_out.items(), LEFT_OUT_TOLD)),
            lock=context.lock.identity if context.lock else "",
        )

    def _state(self) -> WorkerState:
        if self.context.stopping:
            return WorkerState.STOPPING
        return WorkerState.RUNNING if self.context.request is None else WorkerState.QUIET

    def _obey(self, request: WorkerRequest | None) -> None:
        self.context.request = request
        match request:
            case WorkerRequest.QUIET:
                logger.info("An operator asked this worker to take no more jobs until it is resumed")
            case WorkerRequest.STOP:
                logger.info("An operator asked this worker to stop")
            case None:
                logger.info("An operator let this worker take jobs again")
