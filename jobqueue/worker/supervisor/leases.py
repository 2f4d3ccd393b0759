"""Leases: renewed three times in their length, and given up in time where they can't be renewed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from jobqueue.clock import NEVER, SYSTEM
from jobqueue.errors import StopReason
from jobqueue.records import Claim, Extension
from jobqueue.worker.supervisor.claims import HeldClaim, margin
from jobqueue.worker.supervisor.context import WorkerContext
from jobqueue.worker.supervisor.limits import Limits
from jobqueue.worker.zygote.zygote import Zygote

#: How often running jobs are looked at for an operator's wish to stop them.
REVIEW_EVERY = 0.5
#: Shorter jobs are not worth a look.
REVIEW_AFTER = 0.4
#: How often a lease that could not be renewed is tried again in as much time as is left for ending the job: not each
#: turn, for a row may be locked for minutes, and often enough to notice in time that it has to be given up.
_TRIES = 5


class Leases:
    """Keeps what is held, and stops what is lost."""

    def __init__(self, context: WorkerContext, limits: Limits, zygote: Zygote | None) -> None:
        self._context = context
        self._limits = limits
        self._zygote = zygote
        self._review_at = 0.0
        self._trusted: float | None = None

    @property
    def due(self) -> float:
        """When there is something to do."""
        if not len(self._context.claims):
            return NEVER if self._trusted is None else self._review_at
        renewal, now = self._context.claims.renewal, SYSTEM.monotonic()
        out_until = self._context.database.out_until if now < renewal else 0.0
        return max(min(renewal, self._review_at), out_until)

    def act(self) -> None:
        """Renew, review, and give up, as far as it is time."""
        now = SYSTEM.monotonic()
        if now >= self._context.claims.renewal:
            self._renew(now)
        if now >= self._review_at and self._is_worth_a_review(now):
            self._review(now)

    def guard(self) -> None:
        """Tell the zygote of what was just taken, before an executor is given it."""
        claims = self._context.claims
        if claims.running and (self._trusted is None or claims.ends < self._trusted):
            self._trust()

    def _is_worth_a_review(self, now: float) -> bool:
        return not self._context.claims.running or not self._context.database.is_out(now)

    def _renew(self, now: float) -> None:
        by_length: dict[float, list[HeldClaim]] = {}  # those that are due soon go along
        for held in self._context.claims.everything():
            if held.reason is not StopReason.LEASE_LOST and held.extended + held.lease / 4 <= now:
                by_length.setdefault(held.lease, []).append(held)
        if not self._context.database.is_out(now):
            for lease, several in by_length.items():
                self._extend(several, lease)
        for held in self._context.claims.everything():
            if held.ends - margin(held.lease) <= now:
                self._limits.ask(held, StopReason.LEASE_LOST, grace=margin(held.lease) / 2)
        self._plan_next(now)
        self._trust()

    def _plan_next(self, now: float) -> None:
        """Renew when the next lease is due; one that could not be, for its row is locked, some times before its end."""
        everything = self._context.claims.everything()
        soonest = now + min((margin(held.lease) for held in everything), default=0.0) / _TRIES
        self._context.claims.renewal = max(min((held.renewal for held in everything), default=NEVER), soonest)

    def _extend(self, several: Sequence[HeldClaim], lease: float) -> None:
        began = SYSTEM.monotonic()
        by_claim = {held.claim: held for held in several}
        found = self._context.database.ask(
            lambda: self._context.backend.extend([held.claim for held in several], timedelta(seconds=lease))
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
        running = self._context.claims.running.values()
        by_claim = {held.claim: held for held in running if held.reason is None and now - held.since > REVIEW_AFTER}
        if by_claim:
            found = self._context.database.ask(lambda: self._context.backend.review(list(by_claim)))
            if found is not None:
                self._heed(found, by_claim)
        if not self._context.claims.running:
            self._trust()  # nothing is at stake any more

    def _heed(self, found: Extension, by_claim: dict[Claim, HeldClaim]) -> None:
        for claim in found.lost:
            self._limits.ask(by_claim[claim], StopReason.LEASE_LOST)
        for claim in found.cancelled:
            self._limits.ask(by_claim[claim], StopReason.CANCELLED)

    def _trust(self) -> None:
        """Tell the zygote until when this process may be silent: executors end before a lease does."""
        if self._zygote is None:
            return
        self._context.claims.ends = min((held.ends for held in self._context.claims.running.values()), default=NEVER)
        self._trusted = None if self._context.claims.ends == NEVER else self._context.claims.ends
        self._zygote.trust_until(self._trusted)
