"""What the caller of ``enqueue`` holds in hand: which job it is, and a way to wait for what it comes to."""

from __future__ import annotations

import time
from datetime import timedelta

from jobqueue import backends
from jobqueue.clock import SYSTEM
from jobqueue.errors import JobFailed, JobNotFound, JobQueueError, duration
from jobqueue.records import JobRecord
from jobqueue.records import Receipt as Stored
from jobqueue.states import ACTIVE, JobStatus

_FIRST_PAUSE = 0.005
_LONGEST_PAUSE = 0.25


class Receipt(Stored):
    """Which job it is, whether this call made it, and what it comes to for those who want to wait."""

    __slots__ = ()

    def wait(self, timeout: timedelta | float | None = None) -> JobRecord:
        """Wait until the job has ended, however that is, and return it.

        Raises TimeoutError if it has not by then, and JobNotFound if it is gone. Not for requests, which no slow work
        shall hold up, and not inside the transaction that enqueued the job: no worker sees it before that commits.
        """
        backend = backends.current()
        if backend.in_atomic():
            raise JobQueueError(
                f"Job {self.id} is waited for inside a transaction: commit first, so that a worker sees it."
            )
        end = None if timeout is None else SYSTEM.monotonic() + duration(timeout, "timeout").total_seconds()
        pause = _FIRST_PAUSE
        while True:
            record = backends.look_up(self.id)
            if record is None:
                raise JobNotFound(self.id)
            if record.status not in ACTIVE:
                return record
            left = _LONGEST_PAUSE if end is None else end - SYSTEM.monotonic()
            if left <= 0:
                raise TimeoutError(f"Job {self.id} ({record.type}) is still {record.status} after {timeout} s.")
            time.sleep(min(pause, left))
            pause = min(2 * pause, _LONGEST_PAUSE)

    def result(self, timeout: timedelta | float | None = None) -> object:
        """Wait for the job and return what its handler returned; raise JobFailed if it did not complete."""
        record = self.wait(timeout)
        if record.status is not JobStatus.COMPLETED:
            raise JobFailed(record.id, record.type, record.status, record.error or record.end_reason or "")
        return record.result
