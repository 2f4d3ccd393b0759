"""Leases: renewed three times in their length, given up in time where they cannot be, and looked at in between."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from jobqueue.clock import SYSTEM
from jobqueue.errors import StopReason
from jobqueue.records import Claim, Extension
from jobqueue.worker.holdings import NEVER, Held, margin
from jobqueue.worker.limits import Limits
from jobqueue.worker.place import Place
from jobqueue.worker.zygote import Zygote

#: How often running jobs are looked at for an operator's wish to stop them.
REVIEW_EVERY = 0.5
#: Shorter jobs are not worth a look.
REVIEW_AFTER = 0.4
#: How often a lease that could not be renewed is tried again in as much time as is left for ending the job: not each
#: turn, for a row may be locked for minutes, and often enough to notice in time that it has to be given up.
_TRIES = 5


class Leases:
    """Keeps what is held, and stops what is lost."""

    def __init__(self, place: Place, limits: Limits, zygote: Zygote | None) -> None:
        self._place = place
        self._limits = limits
        self._zygote = zygote
        self._review_at = 0.0
        self._trusted: float | None = None

    @property
    def due(self) -> float:
        """When there is something to do."""
        if not len(self._place.holdings):
            return NEVER if self._trusted is None else self._review_at
        renewal, now = self._place.holdings.renewal, SYSTEM.monotonic()
        out_until = self._place.reach.out_until if now < renewal else 0.0
        return max(min(renewal, self._review_at), out_until)

    def act(self) -> None:
        """Renew, review, and give up, as far as it is time."""
        now = SYSTEM.monotonic()
        if now >= self._place.holdings.renewal:
            self._renew(now)
        if now >= self._review_at and self._is_worth_a_review(now):
            self._review(now)

    def guard(self) -> None:
        """Tell the zygote of what was just taken, before an executor is given it."""
        holdings = self._place.holdings
        if holdings.running and (self._trusted is None or holdings.ends < self._trusted):
            self._trust()

    def _is_worth_a_review(self, now: float) -> bool:
        return not self._place.holdings.running or not self._place.reach.is_out(now)

    def _renew(self, now: float) -> None:
        by_length: dict[float, list[Held]] = {}  # those that are due soon go along
        for held in self._place.holdings.everything():
            if held.reason is not StopReason.LEASE_LOST and held.extended + held.lease / 4 <= now:
                by_length.setdefault(held.lease, []).append(held)
        if not self._place.reach.is_out(now):
            for lease, several in by_length.items():
                self._extend(several, lease)
        for held in self._place.holdings.everything():
            if held.ends - margin(held.lease) <= now:
                self._limits.ask(held, StopReason.LEASE_LOST, grace=margin(held.lease) / 2)
        self._plan_next(now)
        self._trust()

    def _plan_next(self, now: float) -> None:
        """Renew when the next lease is due; one that could not be, for its row is locked, some times before its end."""
        everything = self._place.holdings.everything()
        soonest = now + min((margin(held.lease) for held in everything), default=0.0) / _TRIES
        self._place.holdings.renewal = max(min((held.renewal for held in everything), default=NEVER), soonest)

    def _extend(self, several: Sequence[Held], lease: float) -> None:
        began = SYSTEM.monotonic()
        by_claim = {held.claim: held for held in several}
        found = self._place.reach.ask(
            lambda: self._place.backend.extend([held.claim for held in several], timedelta(seconds=lease))
        )
        if found is None:
            return
        unextended = {*found.lost, *found.skipped}
        for held in several:
            if held.claim not in unextended:
                held.extended = began
        self._heed(found, by_claim)

    def _review(self, now: float) -> None:
        self._review_at = now + REVIEW_EVERY
        running = self._place.holdings.running.values()
        by_claim = {held.claim: held for held in running if held.reason is None and now - held.since > REVIEW_AFTER}
        if by_claim:
            found = self._place.reach.ask(lambda: self._place.backend.review(list(by_claim)))
            if found is not None:
                self._heed(found, by_claim)
        if not self._place.holdings.running:
            self._trust()  # nothing is at stake any more

    def _heed(self, found: Extension, by_claim: dict[Claim, Held]) -> None:
        for claim in found.lost:
            self._limits.ask(by_claim[claim], StopReason.LEASE_LOST)
        for claim in found.cancelled:
            self._limits.ask(by_claim[claim], StopReason.CANCELLED)

    def _trust(self) -> None:
        """Tell the zygote until when this process may be silent: executors end before a lease does."""
        if self._zygote is None:
            return
        self._place.holdings.ends = min((held.ends for held in self._place.holdings.running.values()), default=NEVER)
        self._trusted = None if self._place.holdings.ends == NEVER else self._place.holdings.ends
        self._zygote.trust_until(self._trusted)
