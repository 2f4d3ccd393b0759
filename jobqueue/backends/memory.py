"""Jobs in a dictionary, for tests: the whole contract, in one process."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from jobqueue.backends.memory_metering import MemoryMetering
from jobqueue.backends.memory_wake import MemoryListener
from jobqueue.clock import Clock
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
    Followed,
    JobRecord,
    PastAttempt,
    Progress,
    Receipt,
    Scope,
    Settled,
    Settlement,
    Sweep,
    WorkerRecord,
)
from jobqueue.states import MOVES, JobStatus, Move, target


class MemoryBackend(MemoryMetering):
    """A queue that dies with its process."""

    def __init__(self, alias: str = "", clock: Clock | None = None) -> None:
        super().__init__(alias, clock)
        self._listeners: set[MemoryListener] = set()
        self._workers: dict[str, WorkerRecord] = {}

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
            keyed = (row for row in self._rows.values() if row.idempotency_key == draft.idempotency_key)
            return next(keyed, None) or self._rows.get(draft.id)
        if draft.unique_key is not None:
            return self._unique_holder(draft.unique_key) or self._rows.get(draft.id)
        return self._rows.get(draft.id)

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
            workspace=draft.workspace,
            parent_id=draft.parent_id,
            expires_at=draft.expires_at,
            timeout=draft.timeout,
            context=json.loads(draft.context) if draft.context else None,
        )

    # The worker's side

    def cycle(self, owner: str, settlements: Sequence[Settlement] = (), request: ClaimRequest | None = None) -> Cycle:
        with self.atomic():
            refused, followed = self._settle_all(settlements)
            if request is None:
                return Cycle(refused, followed=followed)
            first = self._ready(request)[: request.limit]
            lapsed = [row for row in first if self._lapse(row)]
            claims = tuple(self._take(row, owner, request) for row in first if row not in lapsed)
            full = len(claims) == request.limit
            return Cycle(refused, claims, None if full else timedelta(0) if lapsed else self._next_due(), followed)

    def _lapse(self, row: JobRecord) -> bool:
        """End a queued job that came too late."""
        late = row.expires_at is not None and row.expires_at <= self._now()
        if late:
            self._change(row.id, status=target(Move.EXPIRE), end_reason="expired", completed_at=self._now())
        return late

    def _ready(self, request: ClaimRequest) -> list[JobRecord]:
        now = self._now()
        ready = [
            row
            for row in self._rows.values()
            if row.status is JobStatus.QUEUED
            and row.scheduled_at <= now
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

    def _held(self, claim: Claim | Settlement | Progress) -> JobRecord | None:
        """The fence: return the row only to the holder of its newest claim."""
        row = self._rows.get(claim.id)
        held = (
            row is not None
            and row.fence == claim.fence
            and row.lease_owner == claim.owner
            and row.status is JobStatus.IN_PROGRESS
        )
        return row if held else None

    def _settle_all(self, offers: Sequence[Settlement]) -> Settled:
        refused = tuple(one for one in offers if not self._settle(one))
        children = [
            child for one in offers if one.move is Move.COMPLETE and one not in refused for child in one.children
        ]
        return Settled(refused, tuple(self._follow(child) for child in children))

    def _follow(self, child: Draft) -> Followed:
        try:
            return Followed(child, self._admit(child, self._now()))
        except IdempotencyMismatch as error:
            return Followed(child, None, str(error))

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
            progress=row.progress if offer.progress is None else json.loads(offer.progress),
            lease_owner=None,
            lease_until=None,
            history=row.history if failure is None else (*row.history, _past(row, offer, now)),
        )
        return True

    def settle_in_transaction(self, settlement: Settlement) -> tuple[Followed, ...]:
        if not self.in_atomic():
            raise JobQueueError("settle_in_transaction() needs the transaction the handler worked in; open one first.")
        settled = self._settle_all([settlement])
        if settled.refused:
            raise LeaseLost(settlement.id, settlement.fence)
        return settled.followed

    def extend(self, claims: Sequence[Claim], lease: timedelta) -> Extension:
        with self.atomic():
            held = {claim: row for claim in claims if (row := self._held(claim)) is not None}
            for row in held.values():
                self._change(row.id, lease_until=self._now() + lease)
            return Extension(
                lost=tuple(claim for claim in claims if claim not in held),
                cancelled=tuple(claim for claim, row in held.items() if row.cancel_requested_at is not None),
            )

    def review(self, claims: Sequence[Claim]) -> Extension:
        with self._lock:
            held = {claim: row for claim in claims if (row := self._held(claim)) is not None}
            return Extension(
                lost=tuple(claim for claim in claims if claim not in held),
                cancelled=tuple(claim for claim, row in held.items() if row.cancel_requested_at is not None),
            )

    def held_by(self, owner: str) -> list[tuple[str, int]]:
        with self._lock:
            running = (row for row in self._rows.values() if row.status is JobStatus.IN_PROGRESS)
            return [(row.id, row.fence) for row in running if row.lease_owner == owner]

    def progress(self, reports: Sequence[Progress]) -> tuple[Progress, ...]:
        with self.atomic():
            for one in reports:
                if self._held(one):
                    self._change(one.id, progress=json.loads(one.report))
        return ()

    def enlist(self, worker: WorkerRecord) -> None:
        with self._lock:
            now = self._now()
            self._workers[worker.owner] = replace(worker, seen_at=now)
            day_ago = now - timedelta(days=1)
            self._workers = {owner: one for owner, one in self._workers.items() if one.seen_at > day_ago}

    def dismiss(self, owner: str) -> None:
        with self._lock:
            self._workers.pop(owner, None)

    def workers(self) -> list[WorkerRecord]:
        with self._lock:
            return sorted(self._workers.values(), key=lambda one: (one.name, one.owner))

    def sweep(self, judge: Callable[[Expired], Settlement], limit: int = 500) -> Sweep:
        with self.atomic():
            now = self._now()
            queued = [row for row in self._rows.values() if row.status is JobStatus.QUEUED]
            late = [row.id for row in queued if row.expires_at is not None and row.expires_at <= now][:limit]
            for job_id in late:
                self._lapse(self._rows[job_id])
            running = [row for row in self._rows.values() if row.status is JobStatus.IN_PROGRESS]
            owners = [row.lease_owner for row in running]
            out = [row for row in running if row.lease_until is not None and row.lease_until < now][:limit]
            ended = [judge(_expired(row, owners.count(row.lease_owner) - 1)) for row in out]
            for one in ended:
                self._settle(one)
            return Sweep(tuple(ended), tuple(late))

    def wake(self) -> None:
        for listener in list(self._listeners):
            listener.notify()

    def listen(self) -> MemoryListener:
        listener = MemoryListener(self._listeners.discard)
        self._listeners.add(listener)
        return listener


def _expired(row: JobRecord, company: int) -> Expired:
    taken = (row.id, row.type, row.fence, row.lease_owner or "", row.attempts, row.max_retries, row.crash_count)
    return Expired(*taken, company, row.queue)


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
