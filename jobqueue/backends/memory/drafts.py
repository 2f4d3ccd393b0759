"""The admission of drafts in memory."""

from __future__ import annotations

import json

from jobqueue.backends.memory.tables import MemoryTables
from jobqueue.errors import IdempotencyMismatch
from jobqueue.records import Admission, Draft, DraftReceipt, JobRecord
from jobqueue.states import JobStatus


class MemoryDrafts:
    """Stores drafts, or finds the jobs that have their keys."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    def admit(self, draft: Draft) -> DraftReceipt:
        """Store a draft, or find the job that has its key or stands for it."""
        if draft.debounce is not None:
            return self._debounced(draft)
        return self._plain(draft) if draft.throttle is None else self._throttled(draft, str(draft.unique_key))

    def _debounced(self, draft: Draft) -> DraftReceipt:
        holder = self._holder(draft)
        if holder is None or holder.type != draft.type:
            return self._plain(draft)
        if holder.status is JobStatus.IN_PROGRESS:
            self._tables.change(holder.id, unique_key=None)
            return self._plain(draft)
        latest = holder.created_at + (draft.max_wait or draft.wait)
        moved = max(holder.scheduled_at, min(self._tables.now() + draft.wait, latest))
        self._tables.change(holder.id, scheduled_at=moved)
        if draft.replace_payload:
            self._tables.rewrite(holder.id, draft)
        return self._plain(draft)

    def _throttled(self, draft: Draft, key: str) -> DraftReceipt:
        now = self._tables.now()
        job_type, job_id, until = self._tables.throttles.get(key, (draft.type, draft.id, now))
        if until > now:
            if job_type != draft.type:
                raise IdempotencyMismatch(key, job_id, job_type, draft.type)
            differs = job_id in self._tables.jobs and self._tables.jobs[job_id].payload != json.loads(draft.payload)
            return DraftReceipt(job_id, Admission.EXISTING, payload_differs=differs)
        receipt = self._plain(draft)
        self._tables.throttles[key] = (draft.type, receipt.id, now + (draft.throttle or draft.wait))
        return receipt

    def _plain(self, draft: Draft) -> DraftReceipt:
        holder = self._holder(draft)
        if holder is None:
            self._store(draft)
            return DraftReceipt(draft.id, Admission.CREATED)
        if holder.type != draft.type:
            raise IdempotencyMismatch((draft.key or ("id", draft.id))[1], holder.id, holder.type, draft.type)
        return DraftReceipt(holder.id, Admission.EXISTING, payload_differs=holder.payload != json.loads(draft.payload))

    def _holder(self, draft: Draft) -> JobRecord | None:
        if draft.idempotency_key is not None:
            keyed = (row for row in self._tables.jobs.values() if row.idempotency_key == draft.idempotency_key)
            return next(keyed, None) or self._tables.jobs.get(draft.id)
        if draft.unique_key is not None:
            return self._tables.unique_holder(draft.unique_key) or self._tables.jobs.get(draft.id)
        return self._tables.jobs.get(draft.id)

    def _store(self, draft: Draft) -> None:
        now = self._tables.now()
        row = JobRecord(
            id=draft.id,
            type=draft.type,
            status=JobStatus.QUEUED,
            queue=draft.queue,
            priority=draft.priority,
            scheduled_at=draft.scheduled_at or now + draft.wait,
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
            concurrency_key=draft.concurrency_key,
            parallel=draft.parallel is not False,
            lane=draft.lane,
            lane_position=None if draft.lane is None else self._tables.next_position(),
            fair_key=draft.fair_key,
            parent_id=draft.parent_id,
            expires_at=draft.expires_at,
            timeout=draft.timeout,
            context=json.loads(draft.context) if draft.context else None,
        )
        self._tables.insert(row, draft.payload, draft.context)
