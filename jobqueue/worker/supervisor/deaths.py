"""Dead workers of this machine. Their locks are free, so their claims end at once instead of with their leases."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice

from jobqueue.clock import SYSTEM
from jobqueue.policy.leases import settle_dead
from jobqueue.records import ClaimKey, OverdueLease, Settlement, WorkerRecord
from jobqueue.worker import worker_lock
from jobqueue.worker.database_link import NO_ANSWER
from jobqueue.worker.supervisor.context import WorkerContext
from jobqueue.worker.worker_lock import FreeLock

logger = logging.getLogger("jobqueue")

#: Seconds between two looks at the locks. A look reads a folder, and asks the database only about a death.
LOOK_EVERY = 0.25
#: The same after the database gave no answer about a death.
LOOK_AGAIN = 1.0
#: Seconds after which nothing is expected of a dead worker any more: its last statement may still be under way.
LAST_WORDS = 1.0
#: Seconds after which claims that can't be ended, because their rows are locked, are left to the sweep.
GIVE_UP_AFTER = 60.0
#: How many free locks are held at a time. A night of workers that are killed as they start leaves thousands of files,
#: and a process may open about a thousand.
MOST_HELD = 50


class DeadWorker:
    """A worker that is proved dead, and whose lock this process holds until its claims have ended."""

    def __init__(self, lock: FreeLock, now: float) -> None:
        self.lock = lock
        self.quiet_at = now + LAST_WORDS
        self.given_up_at = now + GIVE_UP_AFTER
        #: The most other claims that it held at a time. Those that end first must not leave the last one alone.
        self.company = 0

    @property
    def owner(self) -> str:
        """The name by which it claimed."""
        return self.lock.owner


class Deaths:
    """Looks for dead workers, and ends their claims.

    While all workers live, no statement is sent. The lock of a dead worker is held meanwhile, so that no two workers
    judge it, and another one takes over if this one dies too.
    """

    def __init__(self, context: WorkerContext, look_for_jobs: Callable[[], None]) -> None:
        self._context = context
        self._look_for_jobs = look_for_jobs
        self._look_at = 0.0
        self._dead: dict[str, DeadWorker] = {}
        #: Free locks that no worker in this database's registry has.
        self._strangers: set[str] = set()

    @property
    def due(self) -> float:
        """Return when to look next."""
        return max(self._look_at, self._context.database.out_until)

    def act(self) -> None:
        """Look at the locks of other workers, and go on with those that are dead, if it is time."""
        now = SYSTEM.monotonic()
        if now < self.due:
            return
        self._look_at = now + LOOK_EVERY
        free = worker_lock.free_locks({*self._strangers, *self._dead})
        self._judge(list(islice(free, max(0, MOST_HELD - len(self._dead)))), now)
        for dead in list(self._dead.values()):
            self._end(dead, now)

    def close(self) -> None:
        """Leave the rest to other workers."""
        for dead in self._dead.values():
            dead.lock.close()
        self._dead.clear()

    def _judge(self, free: Sequence[FreeLock], now: float) -> None:
        """Compare free locks with the registry. Only a worker that has named a lock as its own can be dead by it."""
        if not free:
            return
        workers = self._context.database.ask(self._context.backend.workers.all)
        if workers is None:
            self._look_at = now + LOOK_AGAIN
        named = {(one.owner, one.lock): one for one in workers or ()}
        for lock in free:
            worker = named.get((lock.owner, lock.identity))
            if worker is not None:
                self._begin(lock, worker, now)
                continue
            if workers is not None:
                self._strangers.add(lock.name)
                if lock.is_old:
                    lock.remove()
            lock.close()

    def _begin(self, lock: FreeLock, worker: WorkerRecord, now: float) -> None:
        logger.warning("Worker %s is dead: none of its processes lives", worker.name)
        self._dead[lock.name] = DeadWorker(lock, now)

    def _end(self, dead: DeadWorker, now: float) -> None:
        """End what a dead worker holds, and forget it once it holds nothing more."""
        context = self._context
        held = context.database.ask(lambda: context.backend.held_by(dead.owner))
        if held and now < dead.given_up_at:
            self._end_claims(dead, held)
        elif held is not None and now >= dead.quiet_at:
            dismissed = context.database.ask(lambda: context.backend.workers.dismiss(dead.owner), NO_ANSWER)
            if dismissed is not NO_ANSWER:
                del self._dead[dead.lock.name]
                dead.lock.remove()
                dead.lock.close()

    def _end_claims(self, dead: DeadWorker, held: Sequence[ClaimKey]) -> None:
        context, found = self._context, dict[ClaimKey, OverdueLease]()
        dead.company = max(dead.company, len(held) - 1)

        def judge(claim: OverdueLease) -> Settlement:
            found[claim.id, claim.fence] = claim
            return settle_dead(replace(claim, company=max(dead.company, claim.company)))

        ended = context.database.ask(lambda: context.backend.end_claims(dead.owner, judge))
        if ended:
            logger.warning("Ended %d jobs that worker %s was running when it died", len(ended), dead.owner)
            context.metrics.swept((found[one.claim], one) for one in ended)
            context.events.tell([context.events.swept(one, found[one.claim].type, "crashed") for one in ended])
            context.database.ask(context.backend.wake)
            self._look_for_jobs()
            self._look_at = 0.0  # there may be more than one statement ends
