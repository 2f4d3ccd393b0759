"""What both databases share: how drafts are admitted, how a settlement is written, and what a row means."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.utils import OperationalError, ProgrammingError

from jobqueue import foreign_json
from jobqueue.backends.crowd import Crowd
from jobqueue.backends.drafts import Drafts
from jobqueue.backends.matching import in_status
from jobqueue.backends.obstacles import Obstacles
from jobqueue.backends.wake import Producer
from jobqueue.backends.watching import Watching
from jobqueue.clock import Clock
from jobqueue.errors import IdempotencyMismatch, JobQueueError, LeaseLost, NotMigrated
from jobqueue.models import Attempt, Job
from jobqueue.records import (
    Claim,
    ClaimRequest,
    Cycle,
    Draft,
    Expired,
    Extension,
    Followed,
    Receipt,
    Settled,
    Settlement,
)
from jobqueue.states import MOVES, JobStatus, Move


class SqlBackend(Watching):
    """A backend that keeps jobs in a table of the application's own database, through Django's connection."""

    def __init__(self, alias: str, clock: Clock | None = None) -> None:
        self.alias = alias
        self.clock = clock
        self._producer = Producer()
        self._obstacles = Obstacles(self)
        self._drafts = Drafts(self)
        self._crowd = Crowd()

    @property
    def connection(self) -> BaseDatabaseWrapper:
        """This thread's connection."""
        return connections[self.alias]

    def atomic(self) -> AbstractContextManager[object]:
        return transaction.atomic(using=self.alias)

    def in_atomic(self) -> bool:
        return self.connection.in_atomic_block

    def on_commit(self, callback: Callable[[], object]) -> None:
        # Robust: the work is stored, and a failing receiver must not look like a failing commit.
        transaction.on_commit(callback, using=self.alias, robust=True)

    @contextmanager
    def reporting(self) -> Iterator[None]:
        """Turn a missing table into one sentence that tells to migrate."""
        try:
            yield
        except (ProgrammingError, OperationalError) as error:
            if self.is_missing_table(error):
                raise NotMigrated(self.alias) from error
            raise

    @contextmanager
    def reading(self) -> Iterator[None]:
        with self.reporting(), self.any_text():
            yield

    def true_text(self) -> AbstractContextManager[None]:
        """Within ``any_text``, fail all the same where text would not be found again: a unit sets such jobs aside."""
        return nullcontext()

    @abstractmethod
    def is_missing_table(self, error: Exception) -> bool:
        """Tell a missing table from other trouble."""

    def check_deferred(self) -> None:
        """Have the database check now what it would check at the end of the transaction."""

    @property
    def left_out(self) -> Mapping[str, str]:
        return self._obstacles.left_out

    # The worker's verbs, and what they do where a row makes one fail for all others

    def cycle(self, owner: str, settlements: Sequence[Settlement] = (), request: ClaimRequest | None = None) -> Cycle:
        with self.reporting():
            try:
                return self.turn(owner, settlements, request)
            except Exception as error:
                if request is None or self.in_atomic() or not self.lies_in_row(error):
                    raise
                settled = self.turn(owner, settlements, None) if settlements else Cycle()
                if not self.operate(lambda: self._obstacles.among_due(owner, request)):
                    raise
            return replace(settled, next_due=timedelta(0))

    @abstractmethod
    def turn(self, owner: str, settlements: Sequence[Settlement], request: ClaimRequest | None) -> Cycle:
        """Settle and claim, or fail as a whole."""

    def extend(self, claims: Sequence[Claim], lease: timedelta) -> Extension:
        if not claims:
            return Extension()
        with self.reporting():
            try:
                return self.renew(claims, lease)
            except Exception as error:
                if self.in_atomic() or not self.lies_in_row(error):
                    raise
                return Extension.joined([self._renew_alone(claim, lease) for claim in claims])

    @abstractmethod
    def renew(self, claims: Sequence[Claim], lease: timedelta) -> Extension:
        """Extend claims, or fail as a whole."""

    def _renew_alone(self, claim: Claim, lease: timedelta) -> Extension:
        try:
            return self.renew([claim], lease)
        except Exception as error:
            if not self.lies_in_row(error):
                raise
            return Extension(skipped=(claim,))

    def settle_expired(self, expired: Sequence[Expired], judge: Callable[[Expired], Settlement]) -> list[Settlement]:
        """Settle leases that ran out; one that cannot be settled is in the way of no other. Say what was settled."""
        ended = {one.id: judge(one) for one in expired}
        if not ended:
            return []
        try:
            with transaction.atomic(using=self.alias):
                self.settle_and_remember(list(ended.values()))
        except Exception as error:
            if not self.lies_in_row(error):
                raise
            done = self._obstacles.among(list(ended), lambda job_id: self.settle_and_remember([ended[job_id]]))
            return [ended[job_id] for job_id in done]
        return list(ended.values())

    def end_expired(self, limit: int) -> tuple[str, ...]:
        """End queued jobs past their expiry; one that cannot be ended is in the way of no other."""
        try:
            with transaction.atomic(using=self.alias):
                return tuple(self.expire(limit))
        except Exception as error:
            if not self.lies_in_row(error):
                raise
        queued = in_status(self.alias, JobStatus.QUEUED).filter(expires_at__lte=self.now())
        free = queued.order_by("expires_at").select_for_update(skip_locked=True)
        ids = list(free.values_list("pk", flat=True)[:limit])
        return tuple(self._obstacles.among([one for one in ids if one not in self.left_out], self._expire_alone))

    @abstractmethod
    def expire(self, limit: int) -> list[str]:
        """End queued jobs past their expiry, or fail as a whole."""

    def _expire_alone(self, job_id: str) -> None:
        now = self.now()
        Job.objects.using(self.alias).filter(pk=job_id, status=JobStatus.QUEUED.value).update(
            status=JobStatus.FAILED.value, end_reason="expired", completed_at=now, updated_at=now
        )

    # Enqueueing

    def enqueue(self, drafts: Sequence[Draft]) -> list[Receipt]:
        with self.reporting():
            if len(drafts) == 1:
                return [self.unit(lambda: self._drafts.admit(drafts[0]))]
            return self.unit(lambda: self._drafts.admit_all(drafts)) if drafts else []

    @abstractmethod
    def insert(self, draft: Draft) -> bool:
        """Store one draft in one statement; say whether it was stored or a key was in its way."""

    @abstractmethod
    def insert_all(self, drafts: Sequence[Draft]) -> set[str]:
        """Store drafts in few statements; return the ids of those that no key was in the way of."""

    # Settling

    @abstractmethod
    def settle(self, settlements: Sequence[Settlement]) -> set[tuple[str, int]]:
        """Write settlements through the fence, in the order given; return the claims whose offer was accepted."""

    def settle_and_remember(self, settlements: Sequence[Settlement]) -> Settled:
        """Settle, and store the history, the last reports and the follow-up jobs of what was accepted."""
        # One order for all writers of many rows: no deadlock between two. Of two offers for a claim the first.
        offers = {one.claim: one for one in reversed(settlements)}
        ordered = sorted(offers.values(), key=lambda one: one.claim)
        accepted = self.settle(ordered) if ordered else set()
        failed = [one for one in ordered if one.failure and one.claim in accepted]
        if failed:
            self._remember(failed)
        for one in ordered:
            if one.progress is not None and one.claim in accepted:
                self._report(one.id, one.fence, one.progress)
        return Settled(
            refused(settlements, accepted),
            self._follow(
                [
                    child
                    for one in ordered
                    if one.move is Move.COMPLETE and one.claim in accepted
                    for child in one.children
                ]
            ),
        )

    def _report(self, job_id: str, fence: int, text: str) -> None:
        """Store how far an attempt came that has just been settled, and whose row is locked by that."""
        Job.objects.using(self.alias).filter(pk=job_id, fence=fence).update(progress=foreign_json.read(text))

    def _follow(self, children: Sequence[Draft]) -> tuple[Followed, ...]:
        """Store follow-up jobs. Where one of them cannot be, each goes by itself: it shall harm no other."""
        if not children:
            return ()
        try:
            return tuple(map(Followed, children, self._drafts.admit_all(children)))
        except IdempotencyMismatch:
            return tuple(self._follow_alone(child) for child in children)

    def _follow_alone(self, child: Draft) -> Followed:
        try:
            return Followed(child, self._drafts.admit_all([child])[0])
        except IdempotencyMismatch as error:
            return Followed(child, None, str(error))

    def ran_out(self, rows: Sequence[tuple[Any, ...]]) -> list[Expired]:
        """Make values of claims whose lease ran out; each knows how many others its owner still holds."""
        if not rows:
            return []
        owners = sorted({row[3] for row in rows})
        with self.connection.cursor() as cursor:
            cursor.execute(
                "SELECT coalesce(lease_owner, ''), count(*) FROM job_queue WHERE status = 'in_progress' "
                f"AND coalesce(lease_owner, '') IN ({', '.join(['%s'] * len(owners))}) GROUP BY 1",
                owners,
            )
            held = dict(cursor.fetchall())
        return [Expired(*(*row[:7], held[row[3]] - 1, row[7])) for row in rows]

    def settle_in_transaction(self, settlement: Settlement) -> tuple[Followed, ...]:
        if not self.in_atomic():
            raise JobQueueError("settle_in_transaction() needs the transaction the handler worked in; open one first.")
        with self.reporting():
            settled = self.unit(lambda: self.settle_and_remember([settlement]))
        if settled.refused:
            raise LeaseLost(settlement.id, settlement.fence)
        return settled.followed

    def _remember(self, settlements: Sequence[Settlement]) -> None:
        ids = [one.id for one in settlements]
        with self.connection.cursor() as cursor:
            marks = ", ".join(["%s"] * len(ids))
            cursor.execute(f"SELECT id, attempts FROM job_queue WHERE id IN ({marks})", ids)
            attempts = dict(cursor.fetchall())
        now = self.now()
        Attempt.objects.using(self.alias).bulk_create(
            [
                Attempt(
                    job_id=one.id,
                    fence=one.fence,
                    attempt=attempts[one.id] + MOVES[one.move].refunds,
                    owner=one.owner,
                    ending=one.failure.ending,
                    error_class=one.failure.error_class,
                    message=one.failure.message,
                    traceback=one.failure.traceback,
                    duration=None if one.failure.duration is None else one.failure.duration.total_seconds(),
                    ended_at=now,
                )
                for one in settlements
                if one.failure
            ],
            ignore_conflicts=True,  # a foreign claim never raises the fence, so its number may have its row already
        )


def refused(settlements: Sequence[Settlement], accepted: Set[tuple[str, int]]) -> tuple[Settlement, ...]:
    """Say which settlements were not stored: their claim is not held, or an earlier one of the same claim was."""
    seen: set[tuple[str, int]] = set()
    left = []
    for one in settlements:
        if one.claim not in accepted or one.claim in seen:
            left.append(one)
        seen.add(one.claim)
    return tuple(left)


def settlement_values(settlement: Settlement) -> dict[str, Any]:
    """Spell out what SETTLE reads as ``v``, but for the moments, which are the vendor's."""
    failure, rule = settlement.failure, MOVES[settlement.move]
    return {
        "id": settlement.id,
        "fence": settlement.fence,
        "owner": settlement.owner,
        "target": rule.target.value,
        "result": settlement.result,
        "end_reason": settlement.end_reason,
        "error": failure.message if failure and failure.message else None,
        "fingerprint": failure.fingerprint if failure else None,
        "refund": int(rule.refunds),
        "crashed": int(settlement.move is Move.QUARANTINE),
    }
