"""The cycle, which settles finished jobs and claims new ones for the free slots in one transaction."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import timedelta

from jobqueue import queues
from jobqueue.backends.wake import PAUSE
from jobqueue.clock import NEVER, SYSTEM
from jobqueue.handlers.limits import declared
from jobqueue.handlers.registry import registry
from jobqueue.policy.fingerprint import with_fingerprint
from jobqueue.policy.limits.freed import leaves_room
from jobqueue.policy.limits.limits import LimitBook
from jobqueue.policy.settling import settled
from jobqueue.records import Claim, ClaimRequest, Cycle, Dead, Ending, Event, Failure, Settlement
from jobqueue.states import Move, target
from jobqueue.worker.database_link import NO_ANSWER
from jobqueue.worker.supervisor.claims import HeldClaim, PendingSettlement
from jobqueue.worker.supervisor.context import WorkerContext

logger = logging.getLogger("jobqueue")

#: The pause in seconds after a cycle that failed because of a row, doubled each time.
_FIRST_PAUSE = 0.05
_MOST_DOUBLED = 10
_COMES_AGAIN = (Move.RETRY, Move.QUARANTINE, Move.RELEASE)


class Loop:
    """Decides when the next cycle is due, and runs it."""

    def __init__(self, context: WorkerContext, types: frozenset[str], guard: Callable[[], None]) -> None:
        self._context = context
        self._guard = guard
        self._types = types
        kinds = {name: registry.get(name) for name in registry.names}
        self._limits = {name: kind.timeout.total_seconds() for name, kind in kinds.items()}
        self._leases = {name: kind.lease for name, kind in kinds.items() if kind.lease}
        #: The limits in code, the current names of types, and the entries of queues.
        self._declared = declared(registry)
        self._own_orders = queues.own_orders()
        self._looks: list[float] = [0.0]
        self._looked_at = 0.0
        self._failures = 0
        self.taken = 0
        self.found_nothing = False

    @property
    def limit(self) -> int:
        """Return how many jobs may be claimed now."""
        if self._context.stopping or self._context.request is not None:
            return 0
        most = self._context.options.max_jobs
        return self._context.executors.free if most is None else min(self._context.executors.free, most - self.taken)

    @property
    def due(self) -> float:
        """Return when the next cycle is due."""
        if self._context.claims.finished:
            return 0.0
        look = self._looks[0] if self._looks and self.limit > 0 else NEVER
        return min(look, self._context.claims.again)

    def woken(self) -> None:
        """Look for jobs now, and twice more soon, because producers limit how often they send wake-ups."""
        now = SYSTEM.monotonic()
        self._looks = [now, now + PAUSE, now + 2 * PAUSE]  # the first look plans the next poll

    def _look_at(self, *moments: float) -> None:
        self._looks = sorted({*self._looks, *moments})

    def act(self) -> None:
        """Run a cycle if it is due."""
        began = SYSTEM.monotonic()
        if self.due > began or self._context.database.is_out(began):
            return
        offered = self._context.claims.offer(began)
        offers = [settlement for _, settlement in offered]
        limit = self.limit
        request = self._request(limit) if limit > 0 else None
        cycle = self._context.database.ask(lambda: self._cycle(offers, request))
        if cycle is None:
            if not self._context.database.is_out(SYSTEM.monotonic()):
                self._put_off(began)
            return
        self._failures = 0
        if cycle.postponed:
            offered = self._but_postponed(offered, cycle.postponed)
        self._context.claims.stored(offered)
        self._told(offered, cycle)
        if offered and (book := self._context.backend.book):
            self._pass_on(book, offered, cycle, request)
        if request is not None:
            self._plan_next(began, cycle, limit)
            self._begin(cycle.claims, began)

    def _put_off(self, now: float) -> None:
        """Delay the next cycle, longer after each failure: what failed may fail again."""
        self._failures = min(self._failures + 1, _MOST_DOUBLED)
        self._looks = [now + min(_FIRST_PAUSE * 2**self._failures, self._context.options.poll_interval)]

    def _request(self, limit: int) -> ClaimRequest:
        options = self._context.options
        limits, names, entries = self._declared
        return ClaimRequest(
            limit=limit,
            types=self._types,
            queues=options.queues,
            lease=timedelta(seconds=options.lease),
            leases=self._leases,
            limits=limits,
            names=names,
            entries=entries,
            queue_options=self._own_orders,
        )

    def _cycle(self, offers: Sequence[Settlement], request: ClaimRequest | None) -> Cycle:
        backend, owner = self._context.backend, self._context.owner
        try:
            return backend.cycle(owner, offers, request)
        except Exception as error:
            if not offers or not backend.lies_in_row(error):
                raise
            logger.exception("The database refused a batch of settlements; they are stored one by one")
        alone = [self._settle_alone(offer) for offer in offers]
        refused = tuple(one for cycle in alone for one in cycle.refused)
        postponed = {one.claim for cycle in alone for one in cycle.postponed}
        return Cycle(refused, (), timedelta(0), postponed=tuple(one for one in offers if one.claim in postponed))

    def _settle_alone(self, offer: Settlement) -> Cycle:
        """Store one settlement. If the database can't hold its content, the job becomes a dead letter that says so.

        If that fails too, the claim is given up, and the sweep of its lease finds the obstacle.
        """
        backend, owner = self._context.backend, self._context.owner
        try:
            return backend.cycle(owner, [offer])
        except Exception as error:
            if not backend.lies_in_row(error):
                raise
            held = self._context.claims.finished[offer.claim].held
            failure = Failure.of(
                Ending.FAILED, error_class=type(error).__name__, message="its outcome cannot be stored"
            )
            instead = settled(held.claim, Dead("unusable result"), with_fingerprint(held.claim.type, failure))
        try:
            return backend.cycle(owner, [instead])
        except Exception as error:
            if not backend.lies_in_row(error):
                raise
            logger.error("Job %s cannot be settled and is left to the sweep: %s", offer.id, error)
            return Cycle(refused=(offer,))

    # Results of a cycle

    def _but_postponed(
        self, offered: Sequence[PendingSettlement], postponed: Sequence[Settlement]
    ) -> list[PendingSettlement]:
        """Postpone settlements whose rows other sessions have locked, and return the others."""
        locked = {one.claim for one in postponed}
        self._context.claims.postpone([one for one in offered if one.held.key in locked], SYSTEM.monotonic())
        return [one for one in offered if one.held.key not in locked]

    def _told(self, offered: Sequence[PendingSettlement], cycle: Cycle) -> None:
        context, stored = self._context, offered
        events = []
        if cycle.refused:
            refused = {one.claim for one in cycle.refused}
            stored = [one for one in offered if one.held.key not in refused]
            events = [self._refused(one.held) for one in offered if one.held.key in refused]
        context.metrics.settled(stored)
        context.executors.tell_settled(one.held for one in stored)
        if context.options.drain:
            context.awaited.update(settlement.id for _, settlement in stored if settlement.move in _COMES_AGAIN)
        if context.events.is_heard:
            events += [context.events.stored(held, settlement) for held, settlement in stored]
        if cycle.followed:
            context.database.ask(context.backend.wake)
            events += context.events.followed(cycle.followed)
        if events:
            context.events.tell(events)

    def _pass_on(
        self, book: LimitBook, ended: Sequence[PendingSettlement], cycle: Cycle, request: ClaimRequest | None
    ) -> None:
        """Wake other workers if a limit or a lane has room that this one couldn't fill: nothing else tells them."""
        if leaves_room(book, [held.claim for held, _ in ended], cycle, request):
            self._context.database.ask(self._context.backend.wake)

    def _refused(self, held: HeldClaim) -> Event:
        """Return the event of a refused settlement: a lost claim, or a job that an atomic handler completed itself."""
        record = self._context.database.ask(lambda: self._context.backend.jobs.get(held.claim.id))
        if record is not None and record.fence == held.claim.fence and record.status is target(Move.COMPLETE):
            self._context.metrics.completed(held)
            return self._context.events.completed_itself(held)
        return self._context.events.lost(held)

    def _plan_next(self, now: float, cycle: Cycle, limit: int) -> None:
        self._looks = [look for look in self._looks if look > now]
        self._looked_at = now
        pause = self._context.options.poll_interval
        if cycle.next_due is not None:
            pause = min(pause, cycle.next_due.total_seconds())
        full = len(cycle.claims) == limit
        self.found_nothing = not (cycle.claims or cycle.is_partial or cycle.next_due == timedelta(0))
        self._look_at(now if full else now + pause)

    def _begin(self, claims: Sequence[Claim], began: float) -> None:
        if not claims:
            return
        context, now = self._context, SYSTEM.monotonic()  # the cycle may have taken a while
        several = []
        for claim in claims:
            lease = self._leases.get(claim.type)
            limit = claim.timeout.total_seconds() if claim.timeout else self._limits.get(claim.type, NEVER)
            several.append(
                HeldClaim(claim, lease.total_seconds() if lease else context.options.lease, limit, now, began)
            )
        self.taken += len(claims)
        if context.awaited:
            context.awaited.difference_update(claim.id for claim in claims)
        context.claims.begin(several)
        self._guard()  # before executors get the jobs: from then on this process may freeze at any moment
        context.executors.give(several)
        context.metrics.began(claims, now)
        context.events.began(several)

    # Draining

    def is_drained(self) -> bool:
        """Return whether no job is running or due, and none that this worker attempted waits for another attempt."""
        if len(self._context.claims) or not self.found_nothing or self._context.executors.suspects:
            return False
        if self._looked_at < self._context.changed_at:
            self.woken()  # a handler's own transaction may have brought follow-up jobs
            return False
        return all(self._waits_no_more(job_id) for job_id in list(self._context.awaited))

    def _waits_no_more(self, job_id: str) -> bool:
        """Return whether a job that this worker attempted no longer waits: it was claimed, or ended by an operator."""
        record = self._context.database.ask(lambda: self._context.backend.jobs.get(job_id), NO_ANSWER)
        if record is NO_ANSWER or (record is not None and record.status is target(Move.RETRY)):
            return False
        self._context.awaited.discard(job_id)
        return True
