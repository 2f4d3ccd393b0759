"""The periodic duties of a worker: sweep expired leases, report that it is up, replace oversized executors."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
from itertools import islice

from jobqueue.clock import SYSTEM
from jobqueue.policy.leases import settle_overdue
from jobqueue.records import OverdueLease, Settlement, WorkerRecord, WorkerRequest, WorkerState
from jobqueue.records.worker import NEWS_EVERY
from jobqueue.version import __version__
from jobqueue.worker.database_link import NO_ANSWER
from jobqueue.worker.memory import give_back, resident
from jobqueue.worker.supervisor.context import WorkerContext

logger = logging.getLogger("jobqueue")

SWEEP_EVERY = 30.0
SWEEP_AGAIN = 1.0
#: The heartbeat, by which a worker also hears what operators ask of it.
TELL_EVERY = NEWS_EVERY.total_seconds()
MEASURE_EVERY = 2.0
#: How many jobs that were left out a worker reports.
LEFT_OUT_TOLD = 20
#: After this many jobs there is memory to return.
BUSY = 1_000


class Duties:
    """The periodic duties, each with the time of its next turn."""

    def __init__(self, context: WorkerContext, types: frozenset[str]) -> None:
        self._context = context
        self._types = types
        self._started_at = SYSTEM.now()
        self._sweep_at = self._news_at = self._measure_at = 0.0
        self._rested_after = 0

    @property
    def due(self) -> float:
        """Return when the next duty is due."""
        return max(min(self._sweep_at, self._news_at, self._measure_at), self._context.database.out_until)

    def act(self) -> None:
        """Do the duties that are due."""
        now = SYSTEM.monotonic()
        if now < self.due:
            return
        if now >= self._sweep_at:
            self._sweep_at = now + SWEEP_EVERY
            self._sweep(now)
        if now >= self._news_at:
            self.tell_news()
        if now >= self._measure_at:
            self._measure_at = now + MEASURE_EVERY
            self._renew_executors()
            self._rest()
            if self._context.options.processes:  # otherwise they may be the children of handlers
                _reap_orphans()

    def tell_news(self) -> None:
        """Record in the registry that this worker is up, and how busy it is."""
        self._news_at = SYSTEM.monotonic() + TELL_EVERY
        context, options = self._context, self._context.options
        record = WorkerRecord(
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
            types=tuple(sorted(self._types)),
            left_out=dict(islice(context.backend.left_out.items(), LEFT_OUT_TOLD)),
            lock=context.lock.identity if context.lock else "",
        )
        if context.lock:
            context.lock.touch()
        request = context.database.ask(lambda: context.backend.workers.enlist(record), NO_ANSWER)
        if request is not NO_ANSWER and request != context.request:
            self._obey(request)

    def _state(self) -> WorkerState:
        if self._context.stopping:
            return WorkerState.STOPPING
        return WorkerState.RUNNING if self._context.request is None else WorkerState.QUIET

    def _obey(self, request: WorkerRequest | None) -> None:
        """Do what an operator asked for, and report it with the next turn."""
        self._context.request, self._news_at = request, 0.0
        match request:
            case WorkerRequest.QUIET:
                logger.info("An operator asked this worker to take no more jobs until it is resumed")
            case WorkerRequest.STOP:
                logger.info("An operator asked this worker to stop")
            case None:
                logger.info("An operator let this worker take jobs again")

    def _sweep(self, now: float) -> None:
        context, found = self._context, dict[tuple[str, int], OverdueLease]()

        def judge(overdue: OverdueLease) -> Settlement:
            found[overdue.id, overdue.fence] = overdue
            return settle_overdue(overdue)

        sweep = context.database.ask(lambda: context.backend.sweep(judge))
        if sweep is None:
            self._sweep_at = now + SWEEP_AGAIN
            return
        if sweep.look_again:
            self._sweep_at = now + context.backend.second_look.total_seconds()
        if sweep.ended:
            context.metrics.swept((found[one.claim], one) for one in sweep.ended)
            context.events.tell([context.events.swept(one, found[one.claim].type) for one in sweep.ended])
        if sweep.expired:
            logger.warning("Ended %d jobs that were still queued when they expired", len(sweep.expired))

    def _renew_executors(self) -> None:
        """Replace executors that use too much memory."""
        most = self._context.options.max_rss
        if most is None:
            return
        for link in [one for one in self._context.executors.links if not one.leaving]:
            size = 0 if link.pid is None else resident(link.pid)
            if size > most:
                logger.info("Executor %s is replaced: it uses %s MB", link.pid, size)
                self._context.executors.retire(link)
                self._context.executors.fill()

    def _rest(self) -> None:
        """Return the memory of a busy time to the system, because a worker is idle for most of the day."""
        context = self._context
        if len(context.claims) or context.database.is_lost or context.claims.begun < self._rested_after + BUSY:
            return
        self._rested_after = context.claims.begun
        context.database.ask(context.backend.rest)
        give_back()


def _reap_orphans() -> None:
    """Reap orphaned programs if this is the first process of its container, which inherits them."""
    if os.getpid() != 1:
        return
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
