"""What both databases share: how drafts are admitted, how a settlement is written, and what a row means."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.utils import OperationalError, ProgrammingError

from jobqueue.backends.wake import Producer
from jobqueue.backends.watching import Watching
from jobqueue.clock import Clock
from jobqueue.errors import IdempotencyMismatch, JobQueueError, LeaseLost, NotMigrated
from jobqueue.models import Attempt, Job
from jobqueue.records import Admission, Draft, Expired, Followed, Receipt, Settled, Settlement
from jobqueue.states import ACTIVE, MOVES, Move

CHUNK = 1_000
_KEY_TRIES = 10

INSERT_COLUMNS = (
    "id, type, queue, priority, payload, payload_version, idempotency_key, unique_key, max_retries, tenant, "
    "workspace, parent_id, timeout, context, expires_at, scheduled_at, created_at, updated_at"
)

#: In the order of ``Claim``.
CLAIM_COLUMNS = (
    "id, type, queue, payload, payload_version, attempts, max_retries, fence, lease_owner, tenant, workspace, "
    "parent_id, context, priority, scheduled_at, created_at, expires_at, timeout, crash_count"
)

#: The fence: only the holder of the job's newest claim passes, and only while it holds it. coalesce() keeps Postgres
#: from using statistics of the two columns: it would expect that hardly any row has a lease owner, put that side of the
#: join outside, and compare every settlement with every running job.
HELD = (
    "j.id = v.id AND j.fence = v.fence "
    "AND coalesce(j.lease_owner, '') = v.owner AND coalesce(j.status, '') = 'in_progress'"
)

RAN_OUT_COLUMNS = "id, type, fence, coalesce(lease_owner, ''), attempts, max_retries, crash_count, queue"

#: A job whose holder offers anything but completion. Where an operator asked it to stop, it does not go back.
_GOES_BACK = "v.target = 'queued' AND j.cancel_requested_at IS NULL"
SETTLE = f"""
    status = CASE WHEN v.target = 'queued' AND j.cancel_requested_at IS NOT NULL THEN 'failed' ELSE v.target END,
    end_reason = CASE WHEN {_GOES_BACK} THEN NULL WHEN v.target = 'queued' THEN 'cancelled' ELSE v.end_reason END,
    scheduled_at = CASE WHEN {_GOES_BACK} THEN coalesce(v.due_at, j.scheduled_at) ELSE j.scheduled_at END,
    started_at = CASE WHEN {_GOES_BACK} THEN NULL ELSE j.started_at END,
    completed_at = CASE WHEN {_GOES_BACK} THEN NULL ELSE v.now END,
    result = v.result,
    error = coalesce(v.error, j.error),
    error_fingerprint = coalesce(v.fingerprint, j.error_fingerprint),
    attempts = j.attempts - v.refund,
    crash_count = j.crash_count + v.crashed,
    lease_owner = NULL, lease_until = NULL, updated_at = v.now
"""


class SqlBackend(Watching):
    """A backend that keeps jobs in a table of the application's own database, through Django's connection."""

    def __init__(self, alias: str, clock: Clock | None = None) -> None:
        self.alias = alias
        self.clock = clock
        self._producer = Producer()
        #: Whether the last claim met jobs to leave alone: the next one then goes group by group.
        self._crowded = False

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

    @abstractmethod
    def is_missing_table(self, error: Exception) -> bool:
        """Tell a missing table from other trouble."""

    # Enqueueing

    def enqueue(self, drafts: Sequence[Draft]) -> list[Receipt]:
        with self.reporting():
            if len(drafts) == 1:
                return [self.unit(lambda: self._admit(drafts[0]))]
            return self.unit(lambda: self._admit_all(drafts)) if drafts else []

    @abstractmethod
    def insert(self, draft: Draft) -> bool:
        """Store one draft in one statement; say whether it was stored or a key was in its way."""

    @abstractmethod
    def insert_all(self, drafts: Sequence[Draft]) -> set[str]:
        """Store drafts in few statements; return the ids of those that no key was in the way of."""

    def _admit(self, draft: Draft) -> Receipt:
        for _ in range(_KEY_TRIES):
            if self.insert(draft):
                return Receipt(draft.id, Admission.CREATED)
            # Whoever holds the key; or the draft was stored before, and its job holds its key no more.
            holders = self._holders([draft]) or self._holders([replace(draft, idempotency_key=None, unique_key=None)])
            if holders:
                return _existing(draft, next(iter(holders.values())))
        raise JobQueueError(f"The key of the {draft.type!r} job changed hands {_KEY_TRIES} times; enqueue it again.")

    def _admit_all(self, drafts: Sequence[Draft]) -> list[Receipt]:
        # In key order, so that two bulks with common keys wait for each other in the same order: no deadlock.
        ordered = sorted(drafts, key=_key)
        with self.write():
            chunks = [ordered[start : start + CHUNK] for start in range(0, len(ordered), CHUNK)]
            created = set[str]().union(*(self.insert_all(chunk) for chunk in chunks))
            rest = [draft for draft in drafts if draft.id not in created]
            holders = self._holders(rest) if rest else {}
            receipts = {
                draft.id: _existing(draft, holders[_key(draft)]) if _key(draft) in holders else self._admit(draft)
                for draft in rest
            }
        return [receipts.get(draft.id) or self._first(draft, created) for draft in drafts]

    @staticmethod
    def _first(draft: Draft, created: set[str]) -> Receipt:
        """Say that a draft made its job; one that is listed twice meets itself the second time."""
        outcome = Admission.CREATED if draft.id in created else Admission.EXISTING
        created.discard(draft.id)
        return Receipt(draft.id, outcome)

    def _holders(self, drafts: Sequence[Draft]) -> dict[tuple[str, str], tuple[str, str, str]]:
        """Read who holds the drafts' keys: id, type and payload, by column and key."""
        found: dict[tuple[str, str], tuple[str, str, str]] = {}
        active = ", ".join(f"'{status}'" for status in sorted(ACTIVE))
        for column, condition in (
            ("idempotency_key", ""),
            ("unique_key", f" AND status IN ({active})"),
            ("id", ""),
        ):
            keys = [key for name, key in map(_key, drafts) if name == column]
            for start in range(0, len(keys), CHUNK):
                part = keys[start : start + CHUNK]
                marks = ", ".join(["%s"] * len(part))
                with self.connection.cursor() as cursor:
                    cursor.execute(
                        f"SELECT {column}, id, type, payload FROM job_queue WHERE {column} IN ({marks}){condition}",
                        part,
                    )
                    found.update({(column, row[0]): (row[1], row[2], row[3]) for row in cursor.fetchall()})
        return found

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
        Job.objects.using(self.alias).filter(pk=job_id, fence=fence).update(progress=json.loads(text))

    def _follow(self, children: Sequence[Draft]) -> tuple[Followed, ...]:
        """Store follow-up jobs. Where one of them cannot be, each goes by itself: it shall harm no other."""
        if not children:
            return ()
        try:
            return tuple(map(Followed, children, self._admit_all(children)))
        except IdempotencyMismatch:
            return tuple(self._follow_alone(child) for child in children)

    def _follow_alone(self, child: Draft) -> Followed:
        try:
            return Followed(child, self._admit_all([child])[0])
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


def _key(draft: Draft) -> tuple[str, str]:
    """The column and value under which a draft may meet an older job; without a key, its own id."""
    return draft.key or ("id", draft.id)


def _existing(draft: Draft, holder: tuple[str, str, str]) -> Receipt:
    job_id, job_type, payload = holder
    if job_type != draft.type:
        raise IdempotencyMismatch(_key(draft)[1], job_id, job_type, draft.type)
    return Receipt(job_id, Admission.EXISTING, payload_differs=json.loads(payload) != json.loads(draft.payload))
