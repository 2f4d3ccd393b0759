"""The cycle: settle what finished and claim for the free slots, in one transaction, as often as it is worth it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import timedelta

from jobqueue.backends.wake import PAUSE
from jobqueue.clock import SYSTEM
from jobqueue.handlers.registry import registry
from jobqueue.policy.settling import settled
from jobqueue.records import Claim, ClaimRequest, Cycle, Dead, Ending, Event, Failure, Settlement
from jobqueue.states import Move, target
from jobqueue.worker.holdings import NEVER, Finished, Held
from jobqueue.worker.place import Place

logger = logging.getLogger("jobqueue")

#: After a cycle that failed for what a row holds, in seconds; doubled each time.
_FIRST_PAUSE = 0.05
_MOST_DOUBLED = 10
_COMES_AGAIN = (Move.RETRY, Move.QUARANTINE, Move.RELEASE)


class Loop:
    """Decides when the next cycle is due, and does it."""

    def __init__(self, place: Place, types: frozenset[str], guard: Callable[[], None]) -> None:
        self._place = place
        self._guard = guard
        self._types = types
        kinds = {name: registry.get(name) for name in registry.names}
        self._limits = {name: kind.timeout.total_seconds() for name, kind in kinds.items()}
        self._leases = {name: kind.lease for name, kind in kinds.items() if kind.lease}
        self._looks: list[float] = [0.0]
        self._looked_at = 0.0
        self._failures = 0
        self.taken = 0
        self.found_nothing = False

    @property
    def limit(self) -> int:
        """How many jobs may be claimed now."""
        if self._place.stopping:
            return 0
        most = self._place.options.max_jobs
        return self._place.crew.free if most is None else min(self._place.crew.free, most - self.taken)

    @property
    def due(self) -> float:
        """When the next cycle is worth it."""
        if self._place.holdings.finished:
            return 0.0
        look = self._looks[0] if self._looks and self.limit > 0 else NEVER
        return min(look, self._place.holdings.again)

    def woken(self) -> None:
        """Look now, and again when what producers held back has been committed."""
        now = SYSTEM.monotonic()
        self._looks = [now, now + PAUSE, now + 2 * PAUSE]  # the first of them plans the next poll

    def _look_at(self, *moments: float) -> None:
        self._looks = sorted({*self._looks, *moments})

    def turn(self) -> None:
        """Do one cycle, if it is due."""
        began = SYSTEM.monotonic()
        if self.due > began or self._place.reach.is_out(began):
            return
        offered = self._place.holdings.offer(began)
        offers = [settlement for _, settlement in offered]
        limit = self.limit
        request = self._request(limit) if limit > 0 else None
        cycle = self._place.reach.ask(lambda: self._cycle(offers, request))
        if cycle is None:
            if not self._place.reach.is_out(SYSTEM.monotonic()):
                self._put_off(began)
            return
        self._failures = 0
        if cycle.postponed:
            offered = self._but_postponed(offered, cycle.postponed)
        self._place.holdings.stored(offered)
        self._told(offered, cycle)
        if request is not None:
            self._plan_next(began, cycle, limit)
            self._begin(cycle.claims, began)

    def _put_off(self, now: float) -> None:
        """Look again later and later: what failed, although the database is there, may fail again."""
        self._failures = min(self._failures + 1, _MOST_DOUBLED)
        self._looks = [now + min(_FIRST_PAUSE * 2**self._failures, self._place.options.poll_interval)]

    def _request(self, limit: int) -> ClaimRequest:
        options = self._place.options
        return ClaimRequest(
            limit=limit,
            types=self._types,
            queues=options.queues,
            lease=timedelta(seconds=options.lease),
            leases=self._leases,
        )

    def _cycle(self, offers: Sequence[Settlement], request: ClaimRequest | None) -> Cycle:
        backend, owner = self._place.backend, self._place.owner
        try:
            return backend.cycle(owner, offers, request)
        except Exception as error:
            if not offers or not backend.lies_in_row(error):
                raise
            logger.exception("A batch of settlements was refused by the database; they are stored one by one")
        alone = [self._settle_alone(offer) for offer in offers]
        refused = tuple(one for cycle in alone for one in cycle.refused)
        postponed = {one.claim for cycle in alone for one in cycle.postponed}
        return Cycle(refused, (), timedelta(0), postponed=tuple(one for one in offers if one.claim in postponed))

    def _settle_alone(self, offer: Settlement) -> Cycle:
        """Store one settlement; where the database cannot hold what it says, the job is a dead letter that says so.

        Where it takes not even that, the claim is given up, and the sweep of its lease finds what is in the way.
        """
        backend, owner = self._place.backend, self._place.owner
        try:
            return backend.cycle(owner, [offer])
        except Exception as error:
            if not backend.lies_in_row(error):
                raise
            held = self._place.holdings.finished[offer.claim].held
            failure = Failure.of(
                Ending.FAILED, error_class=type(error).__name__, message="its outcome cannot be stored"
            )
            instead = settled(held.claim, Dead("unusable result"), failure)
        try:
            return backend.cycle(owner, [instead])
        except Exception as error:
            if not backend.lies_in_row(error):
                raise
            logger.error("Job %s cannot be settled, and is left to the sweep: %s", offer.id, error)
            return Cycle(refused=(offer,))

    # What came of it

    def _but_postponed(self, offered: Sequence[Finished], postponed: Sequence[Settlement]) -> list[Finished]:
        """Leave what others have locked for later, and return the rest."""
        locked = {one.claim for one in postponed}
        self._place.holdings.postpone([one for one in offered if one.held.key in locked], SYSTEM.monotonic())
        return [one for one in offered if one.held.key not in locked]

    def _told(self, offered: Sequence[Finished], cycle: Cycle) -> None:
        place, stored = self._place, offered
        events = []
        if cycle.refused:
            refused = {one.claim for one in cycle.refused}
            stored = [one for one in offered if one.held.key not in refused]
            events = [self._refused(one.held) for one in offered if one.held.key in refused]
        place.books.settled(stored)
        if place.options.drain:
            place.awaited.update(settlement.id for _, settlement in stored if settlement.move in _COMES_AGAIN)
        if place.teller.is_heard:
            events += [place.teller.stored(held, settlement) for held, settlement in stored]
        if cycle.followed:
            place.reach.ask(place.backend.wake)
            events += place.teller.followed(cycle.followed)
        if events:
            place.teller.tell(events)

    def _refused(self, held: Held) -> Event:
        """Tell a claim that is lost from one that was completed before, by its handler's own transaction."""
        found = self._place.reach.ask(lambda: (self._place.backend.get(held.claim.id),))
        record = found[0] if found else None
        if record is not None and record.fence == held.claim.fence and record.status is target(Move.COMPLETE):
            self._place.books.completed(held)
            return self._place.teller.completed_itself(held)
        return self._place.teller.lost(held)

    def _plan_next(self, now: float, cycle: Cycle, limit: int) -> None:
        self._looks = [look for look in self._looks if look > now]
        self._looked_at = now
        pause = self._place.options.poll_interval
        if cycle.next_due is not None:
            pause = min(pause, cycle.next_due.total_seconds())
        full = len(cycle.claims) == limit
        self.found_nothing = not (cycle.claims or cycle.is_partial or cycle.next_due == timedelta(0))
        self._look_at(now if full else now + pause)

    def _begin(self, claims: Sequence[Claim], began: float) -> None:
        if not claims:
            return
        place, now = self._place, SYSTEM.monotonic()  # it may have taken a while to get at the database
        several = []
        for claim in claims:
            lease = self._leases.get(claim.type)
            limit = claim.timeout.total_seconds() if claim.timeout else self._limits.get(claim.type, NEVER)
            several.append(Held(claim, lease.total_seconds() if lease else place.options.lease, limit, now, began))
        self.taken += len(claims)
        if place.awaited:
            place.awaited.difference_update(claim.id for claim in claims)
        place.holdings.begin(several)
        self._guard()  # before an executor has a job: from then on this process may stand still at any moment
        place.crew.give(several)
        place.books.began(claims, now)
        place.teller.began(several)

    # Draining

    def is_drained(self) -> bool:
        """Whether nothing runs, nothing is due, and nothing that was attempted here waits for another attempt."""
        if len(self._place.holdings) or not self.found_nothing or self._place.crew.suspects:
            return False
        if self._looked_at < self._place.changed_at:
            self.woken()  # a handler's own transaction may have brought follow-up jobs
            return False
        return all(self._waits_no_more(job_id) for job_id in list(self._place.awaited))

    def _waits_no_more(self, job_id: str) -> bool:
        """Look whether another worker took a job that was attempted here, or an operator ended it."""
        found = self._place.reach.ask(lambda: (self._place.backend.get(job_id),))
        if found is None or (found[0] is not None and found[0].status is target(Move.RETRY)):
            return False
        self._place.awaited.discard(job_id)
        return True
