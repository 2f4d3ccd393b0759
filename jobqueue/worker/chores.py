"""What a worker does now and then, whatever its jobs do: sweep, say that it is up, and renew its executors."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
from itertools import islice

from jobqueue.clock import SYSTEM
from jobqueue.policy.leases import settle_expired
from jobqueue.records import Expired, Settlement, WorkerRecord, WorkerState
from jobqueue.records.worker import NEWS_EVERY
from jobqueue.version import __version__
from jobqueue.worker.memory import give_back, resident
from jobqueue.worker.place import Place

logger = logging.getLogger("jobqueue")

SWEEP_EVERY = 30.0
SWEEP_AGAIN = 1.0
MEASURE_EVERY = 2.0
#: Of how many jobs that are in the way a worker tells.
LEFT_OUT_TOLD = 20
#: After so many jobs there is something to give back.
BUSY = 1_000


class Chores:
    """Each chore knows when it is next due."""

    def __init__(self, place: Place, types: frozenset[str]) -> None:
        self._place = place
        self._types = types
        self._started_at = SYSTEM.now()
        self._sweep_at = self._news_at = self._measure_at = 0.0
        self._rested_after = 0

    @property
    def due(self) -> float:
        """When the next chore is due."""
        return max(min(self._sweep_at, self._news_at, self._measure_at), self._place.reach.out_until)

    def act(self) -> None:
        """Do what is due."""
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
            if self._place.options.processes:  # else they may be the children of handlers
                _reap_orphans()

    def tell_news(self) -> None:
        """Note in the registry that this worker is up, and how busy it is."""
        self._news_at = SYSTEM.monotonic() + NEWS_EVERY.total_seconds()
        place, options = self._place, self._place.options
        record = WorkerRecord(
            owner=place.owner,
            name=options.name or place.owner,
            host=socket.gethostname()[:255],
            pid=os.getpid(),
            version=__version__,
            started_at=self._started_at,
            seen_at=self._started_at,
            state=WorkerState.STOPPING if place.stopping else WorkerState.RUNNING,
            processes=options.processes,
            slots=max(1, options.processes) * options.concurrency,
            busy=len(place.holdings.running),
            queues=None if options.queues is None else tuple(sorted(options.queues)),
            types=tuple(sorted(self._types)),
            left_out=dict(islice(place.backend.left_out.items(), LEFT_OUT_TOLD)),
        )
        place.reach.ask(lambda: place.backend.enlist(record))

    def _sweep(self, now: float) -> None:
        place, found = self._place, dict[tuple[str, int], Expired]()

        def judge(expired: Expired) -> Settlement:
            found[expired.id, expired.fence] = expired
            return settle_expired(expired)

        sweep = place.reach.ask(lambda: place.backend.sweep(judge))
        if sweep is None:
            self._sweep_at = now + SWEEP_AGAIN
            return
        if sweep.look_again:
            self._sweep_at = now + place.backend.second_look.total_seconds()
        if sweep.ended:
            place.books.swept((found[one.claim], one) for one in sweep.ended)
            place.teller.tell([place.teller.swept(one, found[one.claim].type) for one in sweep.ended])
        if sweep.expired:
            logger.warning("Ended %d jobs that were still queued when they expired", len(sweep.expired))

    def _renew_executors(self) -> None:
        """Have executors replaced that grew too large."""
        most = self._place.options.max_rss
        if most is None:
            return
        for member in [one for one in self._place.crew.members if not one.leaving]:
            size = 0 if member.pid is None else resident(member.pid)
            if size > most:
                logger.info("Executor %s is replaced: it takes %s MB", member.pid, size)
                self._place.crew.retire(member)
                self._place.crew.fill()

    def _rest(self) -> None:
        """Give back the memory of a busy time: a worker is idle for most of the day."""
        place = self._place
        if len(place.holdings) or place.reach.is_lost or place.holdings.begun < self._rested_after + BUSY:
            return
        self._rested_after = place.holdings.begun
        place.reach.ask(place.backend.rest)
        give_back()


def _reap_orphans() -> None:
    """Bury what fell to this process, if it is the first of its container: programs whose parents died."""
    if os.getpid() != 1:
        return
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
