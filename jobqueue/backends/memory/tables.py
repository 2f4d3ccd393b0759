"""The tables in memory, and their transactions."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from jobqueue.clock import SYSTEM, Clock
from jobqueue.records import Draft, JobRecord, PauseRecord, Scope, StoredLimit
from jobqueue.records.schedule import ScheduleRecord
from jobqueue.records.turn import ServedTurn
from jobqueue.states import ACTIVE

logger = logging.getLogger("jobqueue")

#: What a rollback restores.
_KEPT = (
    *("jobs", "texts", "pauses", "schedules", "slots", "errors", "retries", "throttles", "limits", "starts", "turns"),
    "_callbacks",
)


class MemoryTables:
    """Tables under one lock, so that only one transaction runs at a time, as on SQLite."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock = clock
        self.lock = threading.RLock()
        self.jobs: dict[str, JobRecord] = {}
        #: The payload and the context of each job, as JSON text.
        self.texts: dict[str, tuple[str, str | None]] = {}
        #: When each error was first seen in each release, and when its dead letters were last retried.
        self.errors: dict[tuple[str, str], datetime] = {}
        self.retries: dict[str, datetime] = {}
        self.schedules: dict[str, ScheduleRecord] = {}
        #: The schedule and the slot of each job that has them.
        self.slots: dict[str, tuple[str, datetime | None]] = {}
        #: The type and id of the job that stands for others with a throttled key, and until when.
        self.throttles: dict[str, tuple[str, str, datetime]] = {}
        self.pauses: dict[tuple[Scope, str], PauseRecord] = {}
        #: The stored limits by place, and the starts under rates: place, key, the end of their window, and its length.
        self.limits: dict[str, StoredLimit] = {}
        self.starts: list[tuple[str, str, datetime, timedelta]] = []
        #: What claims took from the turns of fair queues, and when.
        self.turns: list[tuple[ServedTurn, datetime]] = []
        self._callbacks: list[Callable[[], object]] = []
        self._depth = 0

    def now(self) -> datetime:
        """Return the time of the clock."""
        return (self.clock or SYSTEM).now()

    @contextmanager
    def atomic(self) -> Iterator[None]:
        """Open a transaction, or a savepoint inside one, which an exception rolls back."""
        with self.lock:
            before = {name: copy(getattr(self, name)) for name in _KEPT}
            self._depth += 1
            try:
                yield
            except BaseException:
                for name, value in before.items():
                    setattr(self, name, value)
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
        """Return whether a transaction is open."""
        with self.lock:
            return self._depth > 0

    def on_commit(self, callback: Callable[[], object]) -> None:
        """Call back after the commit."""
        with self.atomic():
            self._callbacks.append(callback)

    def insert(self, row: JobRecord, payload: str, context: str | None) -> None:
        """Store a new job."""
        self.texts[row.id] = (payload, context)
        self.jobs[row.id] = row

    def change(self, job_id: str, **changes: Any) -> None:
        """Change columns of a job."""
        self.jobs[job_id] = replace(self.jobs[job_id], updated_at=self.now(), **changes)

    def rewrite(self, job_id: str, draft: Draft) -> None:
        """Give a job the payload of a draft, with the keys of its limits and its lane."""
        if self.jobs[job_id].queue != draft.queue:
            self.change(job_id, lane=None, lane_position=None)  # a claim gives it a place
        elif self.jobs[job_id].lane != draft.lane:
            position = None if draft.lane is None else self.next_position()
            self.change(job_id, lane=draft.lane, lane_position=position)
        self.texts[job_id] = (draft.payload, draft.context)
        self.change(
            job_id,
            payload=json.loads(draft.payload),
            payload_version=draft.payload_version,
            context=json.loads(draft.context) if draft.context else None,
            concurrency_key=draft.concurrency_key,
            fair_key=draft.fair_key,
        )

    def next_position(self) -> int:
        """Return the next position in a lane."""
        return 1 + max((row.lane_position or 0 for row in self.jobs.values()), default=0)

    def delete(self, job_id: str) -> None:
        """Delete a job."""
        del self.jobs[job_id], self.texts[job_id]

    def unique_holder(self, key: str) -> JobRecord | None:
        """Return the active job that has a unique key."""
        return next((row for row in self.jobs.values() if row.unique_key == key and row.status in ACTIVE), None)
