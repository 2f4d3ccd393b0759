"""The rows in memory, their transaction object, and what an operator may do to them."""

from __future__ import annotations

import json
import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from jobqueue.backends.base import Backend
from jobqueue.backends.memory_matching import lets_through
from jobqueue.clock import SYSTEM, Clock
from jobqueue.records import (
    Amendment,
    DeadLetters,
    Filter,
    Ground,
    Handled,
    JobRecord,
    Pause,
    QueueStats,
    Refusal,
    Scope,
)
from jobqueue.states import ACTIVE, JobStatus, Move, sources, target

logger = logging.getLogger("jobqueue")

Payload = tuple[str, str | None]


class MemoryRows(Backend):
    """Rows under one lock: every transaction waits for the one before it, as on SQLite."""

    def __init__(self, alias: str = "", clock: Clock | None = None) -> None:
        self.alias = alias
        self.clock = clock
        self._lock = threading.RLock()
        self._rows: dict[str, JobRecord] = {}
        self._texts: dict[str, Payload] = {}
        self._pauses: dict[tuple[Scope, str], Pause] = {}
        self._callbacks: list[Callable[[], object]] = []
        self._depth = 0

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
            try:
                callback()
            except Exception:  # the rows are stored, and a failing receiver must not look like a failing commit
                logger.exception("A callback failed after the commit")

    def in_atomic(self) -> bool:
        with self._lock:
            return self._depth > 0

    def on_commit(self, callback: Callable[[], object]) -> None:
        with self.atomic():
            self._callbacks.append(callback)

    def _change(self, job_id: str, **changes: Any) -> None:
        self._rows[job_id] = replace(self._rows[job_id], updated_at=self._now(), **changes)

    def _unique_holder(self, key: str) -> JobRecord | None:
        return next((row for row in self._rows.values() if row.unique_key == key and row.status in ACTIVE), None)


class MemoryOperating(MemoryRows):
    """What an operator may do to jobs in memory."""

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

    def dead_letters(self) -> list[DeadLetters]:
        with self._lock:
            dead = Counter((row.queue, row.type) for row in self._rows.values() if row.status is JobStatus.DEAD_LETTER)
            return [DeadLetters(*name, count) for name, count in sorted(dead.items())]

    def find(
        self, wanted: Filter, limit: int, after_id: str | None = None, newest_first: bool = False
    ) -> list[JobRecord]:
        with self._lock:
            rows = [self._rows[job_id] for job_id in sorted(self._rows, reverse=newest_first)]
        behind = (row for row in rows if after_id is None or (row.id < after_id if newest_first else row.id > after_id))
        return [replace(row, history=()) for row in islice((row for row in behind if lets_through(wanted, row)), limit)]

    def find_ids(self, wanted: Filter, limit: int, after_id: str | None = None) -> list[str]:
        return [row.id for row in self.find(wanted, limit, after_id)]

    def count(self, wanted: Filter, cap: int | None = None) -> int:
        found = len(self.find(wanted, len(self._rows)))
        return found if cap is None else min(found, cap)

    def ahead_of(self, job: JobRecord, cap: int) -> int:
        def place(row: JobRecord) -> tuple[int, datetime, str]:
            return row.priority, row.scheduled_at, row.id

        with self._lock:
            due = [
                row for row in self._rows.values() if row.status is JobStatus.QUEUED and row.scheduled_at <= self._now()
            ]
            free = [row for row in due if not {(Scope.QUEUE, row.queue), (Scope.TYPE, row.type)} & self._pauses.keys()]
            return min(cap, sum(place(row) < place(job) for row in free))

    def now(self) -> datetime:
        return self._now()

    def retry(self, ids: Sequence[str], after: timedelta = timedelta(0), every: timedelta = timedelta(0)) -> Handled:
        due = {job_id: self._now() + after + place * every for place, job_id in enumerate(dict.fromkeys(ids))}
        return self._each(ids, lambda row: self._revive(row, scheduled_at=due[row.id]))

    def retry_edited(self, job_id: str, payload: str, payload_version: int, seen: datetime | None = None) -> Handled:
        def edit(row: JobRecord) -> Refusal | None:
            if seen not in (None, row.updated_at):
                return Ground.HAS_CHANGED.refusal(row.id)
            first = {"first": {"payload": row.payload, "payload_version": row.payload_version}}
            context = first | (row.context if isinstance(row.context, dict) else {})
            changes = {"payload": json.loads(payload), "payload_version": payload_version, "context": context}
            refusal = self._revive(row, scheduled_at=self._now(), **changes)
            if refusal is None:
                self._texts[row.id] = (payload, json.dumps(context))
            return refusal

        return self._each([job_id], edit)

    def _revive(self, row: JobRecord, **changes: Any) -> Refusal | None:
        if row.status not in sources(Move.REVIVE):
            return Ground.NOT_RETRIABLE.refusal(row.id, row.status)
        if row.unique_key is not None and self._unique_holder(row.unique_key):
            return Ground.KEY_IS_HELD.refusal(row.id, row.unique_key)
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
            started_at=None,
            completed_at=None,
            **changes,
        )
        return None

    def amend(self, ids: Sequence[str], amendment: Amendment) -> Handled:
        due_at = self._now() if amendment.now else amendment.scheduled_at
        said = {"queue": amendment.queue, "priority": amendment.priority, "scheduled_at": due_at}
        changes = {name: value for name, value in said.items() if value is not None}

        def change(row: JobRecord) -> Refusal | None:
            if row.status is not JobStatus.QUEUED:
                return Ground.NOT_QUEUED.refusal(row.id, row.status)
            self._change(row.id, **changes)
            return None

        return self._each(ids, change)

    def cancel(self, ids: Sequence[str]) -> Handled:
        with self.atomic():
            handled = self._each(ids, self._cancel)
            asked = tuple(one for one in handled.done if self._rows[one].status is JobStatus.IN_PROGRESS)
        return replace(handled, asked=asked)

    def _cancel(self, row: JobRecord) -> Refusal | None:
        if row.status not in sources(Move.CANCEL):
            return Ground.HAS_ENDED.refusal(row.id, row.status)
        now = self._now()
        if row.status is JobStatus.QUEUED:
            self._change(row.id, status=target(Move.CANCEL), end_reason="cancelled", completed_at=now)
        else:
            self._change(row.id, cancel_requested_at=row.cancel_requested_at or now)
        return None

    def purge(self, ids: Sequence[str]) -> Handled:
        return self._each(ids, self._purge)

    def _purge(self, row: JobRecord) -> Refusal | None:
        if row.status is JobStatus.IN_PROGRESS:
            return Ground.IS_RUNNING.refusal(row.id)
        del self._rows[row.id], self._texts[row.id]
        return None

    def _each(self, ids: Sequence[str], verb: Callable[[JobRecord], Refusal | None]) -> Handled:
        with self.atomic():
            refusals = {
                job_id: verb(self._rows[job_id]) if job_id in self._rows else Ground.MISSING.refusal(job_id)
                for job_id in sorted(ids)
            }
        return Handled(
            done=tuple(job_id for job_id, refusal in refusals.items() if refusal is None),
            refused=tuple(filter(None, refusals.values())),
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


def _stats(queue: str, kind: str, rows: Sequence[JobRecord], now: datetime) -> QueueStats:
    queued = [row for row in rows if row.status is JobStatus.QUEUED]
    due = [row.scheduled_at for row in queued if row.scheduled_at <= now]
    return QueueStats(queue, kind, len(queued), len(queued) - len(due), len(rows) - len(queued), min(due, default=None))
