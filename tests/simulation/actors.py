"""The actors: workers, a sweeper, a producer and an operator, which call the real backend at random."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

from django.db import connections

from jobqueue.backends.base import Backend
from jobqueue.errors import IdempotencyMismatch, LeaseLost
from jobqueue.policy.leases import settle_overdue
from jobqueue.policy.settling import completed, released
from jobqueue.records import (
    Again,
    Alone,
    Claim,
    ClaimRequest,
    Dead,
    Draft,
    Later,
    Limit,
    LimitKind,
    Scope,
    Settlement,
    Stopped,
)
from jobqueue.testing import VirtualClock
from jobqueue.testing.contract.harness import failing
from tests.simulation.ledger import Ledger
from tests.simulation.turns import CRASHES, Actor, Crash

LEASE = timedelta(seconds=15)
TYPES = ("resize", "greet")
QUEUES = ("default", "mail")
SOON = (timedelta(0), timedelta(seconds=5))


#: Few, so that the actors meet at them.
MOST_JOBS = 8
#: The limits of half of the seeds, and the keys that jobs have for them.
LIMITS = (
    Limit(Scope.TYPE, "greet", LimitKind.CONCURRENCY, 1),
    Limit(Scope.QUEUE, "mail", LimitKind.CONCURRENCY, 1, key="account"),
    Limit(Scope.QUEUE, "default", LimitKind.CONCURRENCY, 3),
)
KEYS = (None, '{"account":"a"}', '{"account":"b"}', "foreign")


class RolledBack(Exception):
    """A producer's transaction comes to nothing."""


class World:
    """What the actors share: the jobs, the clock, and the ledger."""

    def __init__(self, alias: str, make_backend: Callable[[], Backend], clock: VirtualClock, ledger: Ledger) -> None:
        self.alias, self.make_backend, self.clock, self.ledger = alias, make_backend, clock, ledger
        self.ids: list[str] = []
        self.clock_goes_back = False
        self.limits: tuple[Limit, ...] = ()

    def connect(self) -> None:
        if self.alias:
            connections[self.alias].ensure_connection()

    def disconnect(self) -> None:
        connections.close_all()

    def draft(self, actor: Actor, **values: Any) -> Draft:
        """Decide a job; its id says by whom, and keeps the order in which this actor made them."""
        actor.made = getattr(actor, "made", 0) + 1
        rng = actor.rng
        return Draft(
            id=f"{actor.made:022}-{actor.name[:1]}{actor.name[-1:]}",
            type=rng.choice(TYPES),
            payload="{}",
            queue=rng.choice(QUEUES),
            priority=rng.choice([1, 5]),
            delay=rng.choice(SOON),
            max_retries=rng.randint(1, 3),
            **({"concurrency_key": rng.choice(KEYS)} if self.limits else {}),
            **values,
        )


class Process:
    """One life of an actor: it has a backend of its own, and forgets everything when it crashes."""

    def __init__(self, world: World, actor: Actor) -> None:
        self.world, self.actor, self.rng, self.ledger = world, actor, actor.rng, world.ledger
        self.backend = world.make_backend()

    def live(self) -> None:
        while not self.actor.turns.calm:
            acts, weights = zip(*self.acts().items(), strict=True)
            act = self.rng.choices(acts, weights)[0]
            # Also where there are no statements: and what others were told is known by the time that this one acts.
            if self.actor.border(act.__name__) in CRASHES:
                self.actor.falling = True
                raise Crash
            try:
                act()
            except Exception:
                if not self.actor.falling:
                    raise
                if self.actor.fate in CRASHES:
                    raise Crash from None
                self._reconnect()

    def _reconnect(self) -> None:
        self.world.disconnect()
        self.world.connect()
        self.actor.falling = False

    def acts(self) -> dict[Callable[[], None], int]:
        """What it may do, and how often."""
        raise NotImplementedError

    def some_ids(self) -> list[str]:
        return self.rng.sample(sorted(self.world.ids), min(len(self.world.ids), self.rng.randint(1, 3)))


class Worker(Process):
    """A supervisor as the backend sees it; its handlers end as the dice say."""

    def __init__(self, world: World, actor: Actor) -> None:
        super().__init__(world, actor)
        actor.lives = getattr(actor, "lives", 0) + 1
        self.owner = f"{actor.name}:{actor.lives}"
        self.held: dict[tuple[str, int], Claim] = {}

    def acts(self) -> dict[Callable[[], None], int]:
        return {self.turn: 6, self.extend: 1, self.settle_in_transaction: 1, self.sweep: 1, self.take_stock: 1}

    def live(self) -> None:
        try:
            super().live()
        finally:
            self.ledger.forgotten(self.owner)

    def turn(self) -> None:
        """Settle what has finished, and claim."""
        count = self.rng.randint(0, len(self.held))
        offers = [self._ending(claim) for claim in self.rng.sample(list(self.held.values()), count)]
        limit = self.rng.randint(0, 3)
        limits = self.world.limits
        request = ClaimRequest(limit=limit, types=frozenset(TYPES), lease=LEASE, limits=limits) if limit else None
        began = self.world.clock.monotonic()
        for one in offers:
            self.ledger.offered(self.owner, one.claim, one.move)
        try:
            cycle = self.backend.cycle(self.owner, offers, request)
        except BaseException:
            for one in offers:
                self.ledger.in_doubt(self.owner, one.claim)
            raise
        for one in offers:
            if one not in cycle.postponed:  # which is held, and offered again
                self.ledger.answered(self.owner, one.claim, stored=one not in cycle.refused)
                self.held.pop(one.claim, None)
        self.world.ids += [one.draft.id for one in cycle.followed]
        self.ledger.accepted.update(one.receipt.id for one in cycle.followed if one.receipt)
        for claim in cycle.claims:
            self.held[(claim.id, claim.fence)] = claim
            self.ledger.claimed(claim, began + LEASE.total_seconds())

    def _ending(self, claim: Claim) -> Settlement:
        again = Again(SOON[1]) if claim.attempt < claim.max_retries else Dead("attempts used up")
        decision = self.rng.choice(
            [None, None, None, "release", again, Later(SOON[0]), Alone(), Dead("given up"), Stopped("cancelled")]
        )
        if decision is None:
            followers = (self.world.draft(self.actor),) if self.rng.random() < 0.2 else ()
            return completed(claim, "1")._replace(children=followers)
        return released(claim) if decision == "release" else failing(claim, decision)

    def settle_in_transaction(self) -> None:
        """Settle as an atomic handler does."""
        if not self.held:
            return
        claim = self.rng.choice(list(self.held.values()))
        offer = completed(claim, '"atomic"')
        # The handler is at work under its lease until it settles, and its transaction may come to nothing.
        self.ledger.offered(self.owner, offer.claim, offer.move)
        try:
            with self.backend.atomic_attempt():
                self.backend.jobs.get(claim.id)
                self.backend.settle_in_transaction(offer)
        except LeaseLost:
            self.ledger.answered(self.owner, offer.claim, stored=False)
        except BaseException:
            self.ledger.in_doubt(self.owner, offer.claim)
            raise
        else:
            self.ledger.answered(self.owner, offer.claim, stored=True)
        del self.held[offer.claim]

    def extend(self) -> None:
        """Renew what is held; what is lost is dropped, and what an operator wants stopped too."""
        claims = list(self.held.values())
        began = self.world.clock.monotonic()
        extension = self.backend.extend(claims, LEASE)
        for claim in claims:
            key = (claim.id, claim.fence)
            if claim in extension.lost:
                self.ledger.lost(claim)
                del self.held[key]
            elif claim not in extension.skipped and (self.owner, *key) not in self.ledger.uncertain:
                self.ledger.claimed(claim, began + LEASE.total_seconds())

    def sweep(self) -> None:
        self.backend.sweep(settle_overdue)

    def take_stock(self) -> None:
        """Give back what the database says is held and this worker knows nothing of: an answer was lost."""
        unknown = [key for key in self.backend.held_by(self.owner) if key not in self.held]
        for job_id, fence in unknown:
            offer = released(SimpleNamespace(id=job_id, fence=fence, owner=self.owner))
            self.ledger.offered(self.owner, offer.claim, offer.move)
            try:
                cycle = self.backend.cycle(self.owner, [offer])
            except BaseException:
                self.ledger.in_doubt(self.owner, offer.claim)
                raise
            if not cycle.postponed:
                self.ledger.answered(self.owner, offer.claim, stored=not cycle.refused)


class Sweeper(Process):
    """Ends leases that ran out, again and again."""

    def acts(self) -> dict[Callable[[], None], int]:
        return {self.sweep: 1}

    def sweep(self) -> None:
        self.backend.sweep(settle_overdue, limit=self.rng.randint(1, 3))


class Producer(Process):
    """Enqueues one job or some, sometimes in a transaction that comes to nothing."""

    def acts(self) -> dict[Callable[[], None], int]:
        return {self.enqueue: 3, self.enqueue_some: 2, self.enqueue_for_nothing: 1}

    def __init__(self, world: World, actor: Actor) -> None:
        super().__init__(world, actor)
        self.in_doubt: list[Draft] = []  # no answer came: they are enqueued again

    def enqueue(self) -> None:
        key = self.rng.choice([{}, {"unique_key": "a"}, {"idempotency_key": f"k{self.rng.randint(0, 5)}"}])
        self._enqueue([self.world.draft(self.actor, **key)])

    def enqueue_some(self) -> None:
        keys = self.rng.sample(["a", "b", "c"], 2)
        self._enqueue([self.world.draft(self.actor, unique_key=key) for key in keys])

    def enqueue_for_nothing(self) -> None:
        draft = self.world.draft(self.actor)
        self.ledger.withdrawn.add(draft.id)
        with suppress(RolledBack), self.backend.atomic():
            self.backend.enqueue([draft])
            raise RolledBack

    def _enqueue(self, drafts: list[Draft]) -> None:
        if len(self.world.ids) > MOST_JOBS and not self.in_doubt:
            return
        self.in_doubt = self.in_doubt or drafts
        self.world.ids += [one.id for one in self.in_doubt if one.id not in self.world.ids]
        with suppress(IdempotencyMismatch):
            receipts = self.backend.enqueue(self.in_doubt)
            self.ledger.accepted.update(receipt.id for receipt in receipts)
        self.in_doubt = []


class Operator(Process):
    """Cancels, retries, purges, pauses and resumes."""

    def acts(self) -> dict[Callable[[], None], int]:
        return {self.cancel: 1, self.retry: 3, self.purge: 1, self.pause: 1, self.resume: 2, self.look: 1}

    def cancel(self) -> None:
        self.backend.operator.cancel(self.some_ids())

    def retry(self) -> None:
        self.backend.operator.retry(self.some_ids())

    def purge(self) -> None:
        self.backend.operator.purge(self.some_ids())

    def pause(self) -> None:
        self.backend.operator.pause(Scope.QUEUE, self.rng.choice(QUEUES))

    def resume(self) -> None:
        for pause in self.backend.operator.pauses():
            self.backend.operator.resume(pause.scope, pause.name)

    def look(self) -> None:
        self.backend.jobs.stats()
        for job_id in self.some_ids():
            self.backend.jobs.get(job_id)
