"""The verbs of an operator in memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from jobqueue.backends.memory.tables import MemoryTables
from jobqueue.backends.ports import Operator
from jobqueue.records import Amendment, Ground, Handled, JobRecord, PauseRecord, Refusal, Scope
from jobqueue.states import JobStatus, Move, sources, target


class MemoryOperator(Operator):
    """Changes rows in memory."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    def retry(self, ids: Sequence[str], after: timedelta = timedelta(0), every: timedelta = timedelta(0)) -> Handled:
        due = {job_id: self._tables.now() + after + place * every for place, job_id in enumerate(dict.fromkeys(ids))}
        return self._each(ids, lambda row: self._revive(row, scheduled_at=due[row.id]))

    def retry_edited(
        self,
        job_id: str,
        payload: str,
        payload_version: int,
        seen: datetime | None = None,
        keys: str | None = None,
        fair_key: str | None = None,
    ) -> Handled:
        def edit(row: JobRecord) -> Refusal | None:
            if seen not in (None, row.updated_at):
                return Ground.HAS_CHANGED.refusal(row.id)
            first = {"first": {"payload": row.payload, "payload_version": row.payload_version}}
            context = first | (row.context if isinstance(row.context, dict) else {})
            changes = {"payload": json.loads(payload), "payload_version": payload_version, "context": context}
            changes |= {"concurrency_key": keys, "fair_key": fair_key}
            refusal = self._revive(row, scheduled_at=self._tables.now(), **changes)
            if refusal is None:
                self._tables.texts[row.id] = (payload, json.dumps(context))
            return refusal

        return self._each([job_id], edit)

    def _revive(self, row: JobRecord, **changes: Any) -> Refusal | None:
        if row.status not in sources(Move.REVIVE):
            return Ground.NOT_RETRIABLE.refusal(row.id, row.status)
        if row.unique_key is not None and self._tables.unique_holder(row.unique_key):
            return Ground.KEY_IS_HELD.refusal(row.id, row.unique_key)
        self._note_retry(row)
        self._tables.change(
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
            started_at=None,
            completed_at=None,
            **changes,
        )
        return None

    def _note_retry(self, row: JobRecord) -> None:
        if row.error_fingerprint and row.status is JobStatus.DEAD_LETTER:
            self._remember(row.error_fingerprint, row)
            self._tables.retries[row.error_fingerprint] = self._tables.now()

    def _remember(self, name: str, row: JobRecord) -> None:
        """Remember since when an error is known, unless it is."""
        if not any(known == name for known, _release in self._tables.errors):
            self._tables.errors[name, ""] = row.completed_at or self._tables.now()

    def regroup(self, fingerprints: Mapping[str, str]) -> list[str]:
        with self._tables.atomic():
            rows = [self._tables.jobs[one] for one in fingerprints if one in self._tables.jobs]
            dead = [row for row in rows if row.status is JobStatus.DEAD_LETTER]
            for row in sorted(dead, key=lambda row: row.completed_at or self._tables.now()):
                name = fingerprints[row.id]
                self._tables.jobs[row.id] = replace(row, error_fingerprint=name)
                self._remember(name, row)
            return [row.id for row in dead]

    def amend(self, ids: Sequence[str], amendment: Amendment) -> Handled:
        due_at = self._tables.now() if amendment.now else amendment.scheduled_at
        said = {"queue": amendment.queue, "priority": amendment.priority, "scheduled_at": due_at}
        changes: dict[str, Any] = {name: value for name, value in said.items() if value is not None}
        if amendment.queue is not None:  # a claim gives it a place in the lane of its new queue, if that has any
            changes |= {"lane": None, "lane_position": None, "fair_key": None}

        def change(row: JobRecord) -> Refusal | None:
            if row.status is not JobStatus.QUEUED:
                return Ground.NOT_QUEUED.refusal(row.id, row.status)
            self._tables.change(row.id, **changes)
            return None

        return self._each(ids, change)

    def cancel(self, ids: Sequence[str]) -> Handled:
        with self._tables.atomic():
            handled = self._each(ids, self._cancel)
            asked = tuple(one for one in handled.done if self._tables.jobs[one].status is JobStatus.IN_PROGRESS)
        return replace(handled, asked=asked)

    def _cancel(self, row: JobRecord) -> Refusal | None:
        if row.status not in sources(Move.CANCEL):
            return Ground.HAS_ENDED.refusal(row.id, row.status)
        now = self._tables.now()
        if row.status is JobStatus.QUEUED:
            self._tables.change(row.id, status=target(Move.CANCEL), end_reason="cancelled", completed_at=now)
        else:
            self._tables.change(row.id, cancel_requested_at=row.cancel_requested_at or now)
        return None

    def purge(self, ids: Sequence[str]) -> Handled:
        return self._each(ids, self._purge)

    def _purge(self, row: JobRecord) -> Refusal | None:
        if row.status is JobStatus.IN_PROGRESS:
            return Ground.IS_RUNNING.refusal(row.id)
        self._tables.delete(row.id)
        return None

    def _each(self, ids: Sequence[str], verb: Callable[[JobRecord], Refusal | None]) -> Handled:
        with self._tables.atomic():
            refusals = {
                job_id: verb(self._tables.jobs[job_id])
                if job_id in self._tables.jobs
                else Ground.MISSING.refusal(job_id)
                for job_id in sorted(ids)
            }
        return Handled(
            done=tuple(job_id for job_id, refusal in refusals.items() if refusal is None),
            refused=tuple(filter(None, refusals.values())),
        )

    def pause(self, scope: Scope, name: str, reason: str = "") -> bool:
        with self._tables.atomic():
            ran = (scope, name) not in self._tables.pauses
            self._tables.pauses.setdefault((scope, name), PauseRecord(scope, name, reason, self._tables.now()))
            return ran

    def resume(self, scope: Scope, name: str) -> bool:
        with self._tables.atomic():
            return self._tables.pauses.pop((scope, name), None) is not None

    def pauses(self) -> list[PauseRecord]:
        with self._tables.lock:
            return [self._tables.pauses[key] for key in sorted(self._tables.pauses)]
