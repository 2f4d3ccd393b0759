"""The renewal of leases, three times in their length. Those that can't be renewed are given up in time."""

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

#: How often running jobs are checked for an operator's request to stop them.
REVIEW_EVERY = 0.5
#: Jobs that run for less than this are not checked.
REVIEW_AFTER = 0.4
#: How often renewal is tried within the margin: not in each turn, because a row may be locked for minutes, but often
#: enough to give up the lease in time.
_TRIES = 5


class Leases:
    """Renews the leases of held claims, and stops the jobs of lost ones."""

    def __init__(self, context: WorkerContext, limits: Limits, zygote: Zygote | None) -> None:
        self._context = context
        self._limits = limits
        self._zygote = zygote
        self._review_at = 0.0
        self._trusted: float | None = None

    @property
    def due(self) -> float:
        """Return when there is something to do."""
        if not len(self._context.claims):
            return NEVER if self._trusted is None else self._review_at
        renewal, now = self._context.claims.renewal, SYSTEM.monotonic()
        out_until = self._context.database.out_until if now < renewal else 0.0
        return max(min(renewal, self._review_at), out_until)

    def act(self) -> None:
        """Renew leases and check running jobs, if it is time."""
        now = SYSTEM.monotonic()
        if now >= self._context.claims.renewal:
            self._renew(now)
        if now >= self._review_at and self._is_worth_a_review(now):
            self._review(now)

    def guard(self) -> None:
        """Tell the zygote about new claims before an executor gets them."""
        claims = self._context.claims
        if claims.running and (self._trusted is None or claims.ends < self._trusted):
            self._trust()

    def _is_worth_a_review(self, now: float) -> bool:
        return not self._context.claims.running or not self._context.database.is_out(now)

    def _renew(self, now: float) -> None:
        by_length: dict[float, list[HeldClaim]] = {}  # includes those that are due soon
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
        """Plan the next renewal. A lease whose row is locked is tried several times before its end."""
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
            self._trust()  # there are no leases to protect

    def _heed(self, found: Extension, by_claim: dict[Claim, HeldClaim]) -> None:
        for claim in found.lost:
            self._limits.ask(by_claim[claim], StopReason.LEASE_LOST)
        for claim in found.cancelled:
            self._limits.ask(by_claim[claim], StopReason.CANCELLED)

    def _trust(self) -> None:
        """Tell the zygote how long this process may be silent, so that executors end before a lease does."""
        if self._zygote is None:
            return
        self._context.claims.ends = min((held.ends for held in self._context.claims.running.values()), default=NEVER)
        self._trusted = None if self._context.claims.ends == NEVER else self._context.claims.ends
        self._zygote.trust_until(self._trusted)
