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
        """Store a draft, or find the job that has its key."""
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
        self._tables.insert(row, draft.payload, draft.context)
