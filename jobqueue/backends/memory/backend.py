"""The backend in memory: the whole contract in one process, for tests."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta

from jobqueue.backends.base import Backend, Judge
from jobqueue.backends.memory.drafts import MemoryDrafts
from jobqueue.backends.memory.ports.alerts import MemoryAlerts
from jobqueue.backends.memory.ports.duties import MemoryDutyRoster
from jobqueue.backends.memory.ports.errors import MemoryErrorReader
from jobqueue.backends.memory.ports.gauges import MemoryGauges
from jobqueue.backends.memory.ports.health import MemoryHealthReader
from jobqueue.backends.memory.ports.jobs import MemoryJobReader
from jobqueue.backends.memory.ports.limits import MemoryLimits
from jobqueue.backends.memory.ports.metrics import MemoryMetrics
from jobqueue.backends.memory.ports.operator import MemoryOperator
from jobqueue.backends.memory.ports.outstanding import MemoryOutstandingReader
from jobqueue.backends.memory.ports.retention import MemoryRetention
from jobqueue.backends.memory.ports.schedules import MemorySchedules
from jobqueue.backends.memory.ports.storage import MemoryStorageReader
from jobqueue.backends.memory.ports.workers import MemoryWorkerRegistry
from jobqueue.backends.memory.settlements import MemorySettlements
from jobqueue.backends.memory.tables import MemoryTables
from jobqueue.backends.memory.wake import MemoryListener
from jobqueue.clock import Clock
from jobqueue.errors import JobQueueError, LeaseLost
from jobqueue.records import (
    Claim,
    ClaimRequest,
    Cycle,
    Draft,
    DraftReceipt,
    Extension,
    Followed,
    JobRecord,
    OverdueLease,
    Progress,
    Scope,
    Settlement,
    Sweep,
)
from jobqueue.states import JobStatus, Move, target


class MemoryBackend(Backend):
    """A queue in memory, which is lost when its process ends."""

    tables_class = MemoryTables
    settlements_class = MemorySettlements

    def __init__(self, alias: str = "", clock: Clock | None = None) -> None:
        self.alias = alias
        self._tables = self.tables_class(clock)
        self._drafts = MemoryDrafts(self._tables)
        self._settlements = self.settlements_class(self._tables, self._drafts)
        self.jobs = MemoryJobReader(self._tables)
        self.operator = MemoryOperator(self._tables)
        self.gauges = MemoryGauges(self._tables)
        self.metrics = MemoryMetrics(self._tables, self.gauges)
        self.workers = MemoryWorkerRegistry(self._tables)
        self.duties = MemoryDutyRoster(self._tables)
        self.retention = MemoryRetention(self._tables)
        self.errors = MemoryErrorReader(self._tables)
        self.storage = MemoryStorageReader()
        self.health = MemoryHealthReader(self._tables)
        self.schedules = MemorySchedules(self._tables, self._drafts, self.jobs)
        self.alerts = MemoryAlerts(self._tables, self._drafts)
        self.outstanding = MemoryOutstandingReader(self._tables)
        self.limits: MemoryLimits = MemoryLimits(self._tables)
        self.lanes = self.limits.lanes
        self.turns = self.limits.turns
        self._listeners: set[MemoryListener] = set()

    @property
    def clock(self) -> Clock | None:
        return self._tables.clock

    @clock.setter
    def clock(self, clock: Clock | None) -> None:
        self._tables.clock = clock

    # The caller's side

    def atomic(self) -> AbstractContextManager[object]:
        return self._tables.atomic()

    def in_atomic(self) -> bool:
        return self._tables.in_atomic()

    def now(self) -> datetime:
        return self._tables.now()

    def on_commit(self, callback: Callable[[], object]) -> None:
        self._tables.on_commit(callback)

    def enqueue(self, drafts: Sequence[Draft]) -> list[DraftReceipt]:
        with self._tables.atomic():
            return [self._drafts.admit(draft) for draft in drafts]

    # The worker's side

    def cycle(self, owner: str, settlements: Sequence[Settlement] = (), request: ClaimRequest | None = None) -> Cycle:
        with self._tables.atomic():
            refused, followed = self._settlements.store(settlements)
            if request is None:
                return Cycle(refused, followed=followed)
            first, chosen = self.limits.choose(self._ready(request), request)
            lapsed = [row for row in first if self._lapse(row)]
            fresh = [row for row in first if row not in lapsed]
            claims = tuple(self._take(row, owner, request) for row in fresh)
            self.limits.record(fresh, request)
            if len(claims) == request.limit:
                return Cycle(refused, claims, None, followed)
            waits = [one for one in (self._next_due(), chosen.next_start) if one is not None]
            next_due = timedelta(0) if lapsed else min(waits, default=None)
            return Cycle(refused, claims, next_due, followed, is_partial=bool(chosen.withheld))

    def _lapse(self, row: JobRecord) -> bool:
        """End a queued job that is past its expiry."""
        late = row.expires_at is not None and row.expires_at <= self._tables.now()
        if late:
            self._tables.change(
                row.id, status=target(Move.EXPIRE), end_reason="expired", completed_at=self._tables.now()
            )
        return late

    def _ready(self, request: ClaimRequest) -> list[JobRecord]:
        now = self._tables.now()
        ready = [
            row
            for row in self._tables.jobs.values()
            if row.status is JobStatus.QUEUED
            and row.scheduled_at <= now
            and row.type in request.types
            and (request.queues is None or row.queue in request.queues)
            and (Scope.QUEUE, row.queue) not in self._tables.pauses
            and (Scope.TYPE, row.type) not in self._tables.pauses
        ]
        return sorted(ready, key=lambda row: (row.priority, row.scheduled_at, row.id))

    def _next_due(self) -> timedelta | None:
        now = self._tables.now()
        queued = (row.scheduled_at for row in self._tables.jobs.values() if row.status is JobStatus.QUEUED)
        return min((moment - now for moment in queued if moment > now), default=None)

    def _take(self, row: JobRecord, owner: str, request: ClaimRequest) -> Claim:
        now = self._tables.now()
        self._tables.change(
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
        payload, context = self._tables.texts[row.id]
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

    def settle_in_transaction(self, settlement: Settlement) -> tuple[Followed, ...]:
        if not self.in_atomic():
            raise JobQueueError("settle_in_transaction() needs the transaction the handler worked in; open one first.")
        settled = self._settlements.store([settlement])
        if settled.refused:
            raise LeaseLost(settlement.id, settlement.fence)
        return settled.followed

    def extend(self, claims: Sequence[Claim], lease: timedelta) -> Extension:
        with self._tables.atomic():
            held = {claim: row for claim in claims if (row := self._settlements.held(claim)) is not None}
            for row in held.values():
                self._tables.change(row.id, lease_until=self._tables.now() + lease)
            return Extension(
                lost=tuple(claim for claim in claims if claim not in held),
                cancelled=tuple(claim for claim, row in held.items() if row.cancel_requested_at is not None),
            )

    def review(self, claims: Sequence[Claim]) -> Extension:
        with self._tables.lock:
            held = {claim: row for claim in claims if (row := self._settlements.held(claim)) is not None}
            return Extension(
                lost=tuple(claim for claim in claims if claim not in held),
                cancelled=tuple(claim for claim, row in held.items() if row.cancel_requested_at is not None),
            )

    def held_by(self, owner: str) -> list[tuple[str, int]]:
        with self._tables.lock:
            running = (row for row in self._tables.jobs.values() if row.status is JobStatus.IN_PROGRESS)
            return [(row.id, row.fence) for row in running if row.lease_owner == owner]

    def progress(self, reports: Sequence[Progress]) -> tuple[Progress, ...]:
        with self._tables.atomic():
            for one in reports:
                if self._settlements.held(one):
                    self._tables.change(one.id, progress=json.loads(one.report))
        return ()

    def sweep(self, judge: Judge, limit: int = 500) -> Sweep:
        with self._tables.atomic():
            now = self._tables.now()
            queued = [row for row in self._tables.jobs.values() if row.status is JobStatus.QUEUED]
            late = [row.id for row in queued if row.expires_at is not None and row.expires_at <= now][:limit]
            for job_id in late:
                self._lapse(self._tables.jobs[job_id])
            running = [row for row in self._tables.jobs.values() if row.status is JobStatus.IN_PROGRESS]
            owners = [row.lease_owner for row in running]
            out = [row for row in running if row.lease_until is not None and row.lease_until < now][:limit]
            ended = [judge(_overdue(row, owners.count(row.lease_owner) - 1)) for row in out]
            for one in ended:
                self._settlements.settle(one)
            return Sweep(tuple(ended), tuple(late))

    def end_claims(self, owner: str, judge: Judge, limit: int = 500) -> tuple[Settlement, ...]:
        with self._tables.atomic():
            running = (row for row in self._tables.jobs.values() if row.status is JobStatus.IN_PROGRESS)
            held = [row for row in running if row.lease_owner == owner]
            ended = tuple(judge(_overdue(row, len(held) - 1)) for row in held[:limit])
            for one in ended:
                self._settlements.settle(one)
            return ended

    def wake(self, age: float = 0.0) -> None:
        for listener in list(self._listeners):
            listener.notify()

    def listen(self) -> MemoryListener:
        listener = MemoryListener(self._listeners.discard)
        self._listeners.add(listener)
        return listener


def _overdue(row: JobRecord, company: int) -> OverdueLease:
    taken = (row.id, row.type, row.fence, row.lease_owner or "", row.attempts, row.max_retries, row.crash_count)
    return OverdueLease(*taken, company, row.queue)
