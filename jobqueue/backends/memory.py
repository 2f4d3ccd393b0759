"""Jobs in a dictionary, for tests: the whole contract, in one process, with a transaction object of its own."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from select import select
from typing import Any

from jobqueue.backends.base import Backend
from jobqueue.backends.wake import Listener
from jobqueue.clock import SYSTEM, Clock
from jobqueue.errors import IdempotencyMismatch, JobQueueError, LeaseLost
from jobqueue.records import (
    Admission,
    Claim,
    ClaimRequest,
    Cycle,
    Draft,
    Ending,
    Expired,
    Extension,
    Handled,
    JobRecord,
    PastAttempt,
    Pause,
    QueueStats,
    Receipt,
    Refusal,
    Scope,
    Settlement,
    Sweep,
)
from jobqueue.states import ACTIVE, MOVES, JobStatus, Move, sources, target

Payload = tuple[str, str | None]


class MemoryBackend(Backend):
    """A queue that dies with its process. One lock makes every transaction wait for the one before it, as on SQLite."""

    def __init__(self, alias: str = "", clock: Clock | None = None) -> None:
        self.alias = alias
        self.clock = clock
        self._lock = threading.RLock()
        self._rows: dict[str, JobRecord] = {}
        self._texts: dict[str, Payload] = {}
        self._pauses: dict[tuple[Scope, str], Pause] = {}
        self._callbacks: list[Callable[[], object]] = []
        self._depth = 0
        self._listeners: set[MemoryListener] = set()

    def _now(self) -> datetime:
        return (self.clock or SYSTEM).now()

    # The caller's side

    @contextmanager
    def atomic(self) -> Iterator[None]:
        """Open a transaction, or a savepoint in the one that is open; an exception undoes what came since."""
        with self._lock:
            before = dict(self._rows), dict(self._texts), dict(self._pauses), list(self._callbacks)
            self._depth += 1
            try:
                yield
            except BaseException:
                self._rows, self._texts, self._pauses, self._callbacks = before
                raise
            finally:
                self._depth -= 1
            callbacks: list[Callable[[], object]] = []
            if not self._depth:
                callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def in_atomic(self) -> bool:
        with self._lock:
            return self._depth > 0

    def on_commit(self, callback: Callable[[], object]) -> None:
        with self.atomic():
            self._callbacks.append(callback)

    def enqueue(self, drafts: Sequence[Draft]) -> list[Receipt]:
        with self.atomic():
            return [self._admit(draft, self._now()) for draft in drafts]

    def _admit(self, draft: Draft, now: datetime) -> Receipt:
        holder = self._holder(draft)
        if holder is None:
            self._store(draft, now)
            return Receipt(draft.id, Admission.CREATED)
        if holder.type != draft.type:
            raise IdempotencyMismatch((draft.key or ("id", draft.id))[1], holder.id, holder.type, draft.type)
        return Receipt(holder.id, Admission.EXISTING, payload_differs=holder.payload != json.loads(draft.payload))

    def _holder(self, draft: Draft) -> JobRecord | None:
        if draft.idempotency_key is not None:
            return next((row for row in self._rows.values() if row.idempotency_key == draft.idempotency_key), None)
        if draft.unique_key is not None:
            return self._unique_holder(draft.unique_key)
        return self._rows.get(draft.id)

    def _unique_holder(self, key: str) -> JobRecord | None:
        return next((row for row in self._rows.values() if row.unique_key == key and row.status in ACTIVE), None)

    def _store(self, draft: Draft, now: datetime) -> None:
        self._texts[draft.id] = (draft.payload, draft.context)
        self._rows[draft.id] = JobRecord(
            id=draft.id,
            type=draft.type,
            status=JobStatus.QUEUED,
            queue=draft.queue,
            priority=draft.priority,
            scheduled_at=draft.scheduled_at or now + draft.delay,
            payload=json.loads(draft.payload),
            payload_version=draft.payload_version,
            attempts=0,
            max_retries=draft.max_retries,
            fence=0,
            created_at=now,
            updated_at=now,
            idempotency_key=draft.idempotency_key,
            unique_key=draft.unique_key,
            tenant=draft.tenant,
            expires_at=draft.expires_at,
            timeout=draft.timeout,
            context=json.loads(draft.context) if draft.context else None,
        )

    def _change(self, job_id: str, **changes: Any) -> None:
        self._rows[job_id] = replace(self._rows[job_id], updated_at=self._now(), **changes)

    # The worker's side

    def cycle(self, owner: str, settlements: Sequence[Settlement] = (), request: ClaimRequest | None = None) -> Cycle:
        with self.atomic():
            refused = tuple(one for one in settlements if not self._settle(one))
            if request is None:
                return Cycle(refused)
            claims = tuple(self._take(row, owner, request) for row in self._ready(request)[: request.limit])
            return Cycle(refused, claims, None if len(claims) == request.limit else self._next_due())

    def _ready(self, request: ClaimRequest) -> list[JobRecord]:
        now = self._now()
        ready = [
            row
            for row in self._rows.values()
            if row.status is JobStatus.QUEUED
            and row.scheduled_at <= now
            and (row.expires_at is None or row.expires_at > now)
            and row.type in request.types
            and (request.queues is None or row.queue in request.queues)
            and (Scope.QUEUE, row.queue) not in self._pauses
            and (Scope.TYPE, row.type) not in self._pauses
        ]
        return sorted(ready, key=lambda row: (row.priority, row.scheduled_at, row.id))

    def _next_due(self) -> timedelta | None:
        now = self._now()
        queued = (row.scheduled_at for row in self._rows.values() if row.status is JobStatus.QUEUED)
        return min((moment - now for moment in queued if moment > now), default=None)

    def _take(self, row: JobRecord, owner: str, request: ClaimRequest) -> Claim:
        now = self._now()
        self._change(
            row.id,
            status=target(Move.CLAIM),
            lease_owner=owner,
            lease_until=now + request.lease_of(row.type),
            started_at=now,
            attempts=row.attempts + 1,
            fence=row.fence + 1,
            cancel_requested_at=None,
            end_reason=None,
        )
        payload, context = self._texts[row.id]
        return Claim(
            id=row.id,
            type=row.type,
            queue=row.queue,
            priority=row.priority,
            payload=payload,
            payload_version=row.payload_version,
            attempt=row.attempts + 1,
            max_retries=row.max_retries,
            fence=row.fence + 1,
            scheduled_at=row.scheduled_at,
            created_at=row.created_at,
            expires_at=row.expires_at,
            timeout=row.timeout,
            tenant=row.tenant,
            workspace=row.workspace,
            parent_id=row.parent_id,
            crash_count=row.crash_count,
            context=context,
            owner=owner,
        )

    def _held(self, claim: Claim | Settlement) -> JobRecord | None:
        """The fence: return the row only to the holder of its newest claim."""
        row = self._rows.get(claim.id)
        held = (
            row is not None
            and row.fence == claim.fence
            and row.lease_owner == claim.owner
            and row.status is JobStatus.IN_PROGRESS
        )
        return row if held else None

    def _settle(self, offer: Settlement) -> bool:
        row = self._held(offer)
        if row is None:
            return False
        now, rule, failure = self._now(), MOVES[offer.move], offer.failure
        stopped = rule.target is JobStatus.QUEUED and row.cancel_requested_at is not None
        goes_back = rule.target is JobStatus.QUEUED and not stopped
        moved = row.scheduled_at if offer.delay is None else now + offer.delay
        self._change(
            row.id,
            status=JobStatus.FAILED if stopped else rule.target,
            end_reason=None if goes_back else "cancelled" if stopped else offer.end_reason,
            scheduled_at=moved if goes_back else row.scheduled_at,
            started_at=None if goes_back else row.started_at,
            completed_at=None if goes_back else now,
            result=None if offer.result is None else json.loads(offer.result),
            error=failure.message if failure and failure.message else row.error,
            error_fingerprint=failure.fingerprint if failure and failure.fingerprint else row.error_fingerprint,
            attempts=row.attempts - rule.refunds,
            crash_count=row.crash_count + (offer.move is Move.QUARANTINE),
            lease_owner=None,
            lease_until=None,
            history=row.history if failure is None else (*row.history, _past(row, offer, now)),
        )
        return True

    def settle_in_transaction(self, settlement: Settlement) -> None:
        if not self.in_atomic():
            raise JobQueueError("settle_in_transaction() needs the transaction the handler worked in; open one first.")
        if not self._settle(settlement):
            raise LeaseLost(settlement.id, settlement.fence)

    def extend(self, claims: Sequence[Claim], lease: timedelta) -> Extension:
        with self.atomic():
            held = {claim: row for claim in claims if (row := self._held(claim)) is not None}
            for row in held.values():
                self._change(row.id, lease_until=self._now() + lease)
            return Extension(
                lost=tuple(claim for claim in claims if claim not in held),
                cancelled=tuple(claim for claim, row in held.items() if row.cancel_requested_at is not None),
            )

    def sweep(self, judge: Callable[[Expired], Settlement], limit: int = 500) -> Sweep:
        with self.atomic():
            now = self._now()
            rows = list(self._rows.values())
            late = [
                row.id for row in rows if row.status is JobStatus.QUEUED and row.expires_at and row.expires_at <= now
            ]
            for job_id in late[:limit]:
                self._change(job_id, status=target(Move.EXPIRE), end_reason="expired", completed_at=now)
            out = [
                row for row in rows if row.status is JobStatus.IN_PROGRESS and row.lease_until and row.lease_until < now
            ]
            owners = [row.lease_owner for row in out[:limit]]
            ended = [judge(_expired(row, owners.count(row.lease_owner) - 1)) for row in out[:limit]]
            for one in ended:
                self._settle(one)
            return Sweep(tuple(ended), tuple(late[:limit]))

    def wake(self) -> None:
        for listener in list(self._listeners):
            listener.notify()

    def listen(self) -> MemoryListener:
        listener = MemoryListener(self)
        self._listeners.add(listener)
        return listener

    def forget(self, listener: MemoryListener) -> None:
        """Wake a listener no more."""
        self._listeners.discard(listener)

    # The operator's side

    def get(self, job_id: str) -> JobRecord | None:
        with self._lock:
            return self._rows.get(job_id)

    def stats(self) -> list[QueueStats]:
        with self._lock:
            now = self._now()
            groups: dict[tuple[str, str], list[JobRecord]] = {}
            for row in self._rows.values():
                if row.status in ACTIVE:
                    groups.setdefault((row.queue, row.type), []).append(row)
            return [_stats(queue, kind, rows, now) for (queue, kind), rows in sorted(groups.items())]

    def retry(self, ids: Sequence[str]) -> Handled:
        return self._each(ids, self._revive)

    def _revive(self, row: JobRecord) -> str | None:
        if row.status not in sources(Move.REVIVE):
            return f"is {row.status}; only failed jobs and dead letters are retried"
        if row.unique_key is not None and self._unique_holder(row.unique_key):
            return f"a newer job holds its unique key {row.unique_key!r}"
        self._change(
            row.id,
            status=target(Move.REVIVE),
            attempts=0,
            crash_count=0,
            error=None,
            error_fingerprint=None,
            end_reason=None,
            result=None,
            progress=None,
            cancel_requested_at=None,
            expires_at=None,
            scheduled_at=self._now(),
            started_at=None,
            completed_at=None,
        )
        return None

    def cancel(self, ids: Sequence[str]) -> Handled:
        return self._each(ids, self._cancel)

    def _cancel(self, row: JobRecord) -> str | None:
        if row.status not in sources(Move.CANCEL):
            return f"is {row.status} already"
        now = self._now()
        if row.status is JobStatus.QUEUED:
            self._change(row.id, status=target(Move.CANCEL), end_reason="cancelled", completed_at=now)
        else:
            self._change(row.id, cancel_requested_at=row.cancel_requested_at or now)
        return None

    def purge(self, ids: Sequence[str]) -> Handled:
        return self._each(ids, self._purge)

    def _purge(self, row: JobRecord) -> str | None:
        if row.status is JobStatus.IN_PROGRESS:
            return "is running; cancel it first"
        del self._rows[row.id], self._texts[row.id]
        return None

    def _each(self, ids: Sequence[str], verb: Callable[[JobRecord], str | None]) -> Handled:
        with self.atomic():
            reasons = {
                job_id: verb(self._rows[job_id]) if job_id in self._rows else "does not exist" for job_id in sorted(ids)
            }
        return Handled(
            done=tuple(job_id for job_id, reason in reasons.items() if reason is None),
            refused=tuple(Refusal(job_id, reason) for job_id, reason in reasons.items() if reason is not None),
        )

    def pause(self, scope: Scope, name: str, reason: str = "") -> bool:
        with self.atomic():
            ran = (scope, name) not in self._pauses
            self._pauses.setdefault((scope, name), Pause(scope, name, reason, self._now()))
            return ran

    def resume(self, scope: Scope, name: str) -> bool:
        with self.atomic():
            return self._pauses.pop((scope, name), None) is not None

    def pauses(self) -> list[Pause]:
        with self._lock:
            return [self._pauses[key] for key in sorted(self._pauses)]


class MemoryListener(Listener):
    """A pipe that wake-ups write to."""

    def __init__(self, backend: MemoryBackend) -> None:
        self._backend = backend
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)

    def fileno(self) -> int:
        return self._reading

    def notify(self) -> None:
        """Make the pipe readable; a full one is readable already."""
        try:
            os.write(self._writing, b"!")
        except BlockingIOError:
            return

    def hear(self, timeout: float) -> bool:
        heard = bool(select([self._reading], [], [], timeout)[0])
        if heard:
            os.read(self._reading, 65_536)
        return heard

    def self_test(self, timeout: float = 2.0) -> bool:
        self.notify()
        return self.hear(timeout)

    def close(self) -> None:
        self._backend.forget(self)
        os.close(self._reading)
        os.close(self._writing)


def _expired(row: JobRecord, company: int) -> Expired:
    return Expired(
        row.id, row.type, row.fence, row.lease_owner or "", row.attempts, row.max_retries, row.crash_count, company
    )


def _past(row: JobRecord, offer: Settlement, now: datetime) -> PastAttempt:
    failure = offer.failure
    if failure is None:
        raise AssertionError("only an attempt that did not succeed is remembered")
    return PastAttempt(
        fence=row.fence,
        attempt=row.attempts,
        owner=offer.owner,
        ending=Ending(failure.ending),
        error_class=failure.error_class,
        message=failure.message,
        traceback=failure.traceback,
        duration=failure.duration,
        ended_at=now,
    )


def _stats(queue: str, kind: str, rows: Sequence[JobRecord], now: datetime) -> QueueStats:
    queued = [row for row in rows if row.status is JobStatus.QUEUED]
    due = [row.scheduled_at for row in queued if row.scheduled_at <= now]
    return QueueStats(queue, kind, len(queued), len(queued) - len(due), len(rows) - len(queued), min(due, default=None))
