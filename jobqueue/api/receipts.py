"""Receipts: the return value of ``enqueue``, with ways to wait for the job."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from asgiref.sync import sync_to_async

from jobqueue import backends
from jobqueue.clock import SYSTEM
from jobqueue.errors import JobFailed, JobNotFound, JobQueueError, duration
from jobqueue.handlers.registry import registry
from jobqueue.records import DraftReceipt, JobRecord
from jobqueue.states import ACTIVE, JobStatus

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    #: A handler's return type. ``Receipt`` without parameters stands for any.
    T = TypeVarWithDefault("T", covariant=True, default=Any)
else:
    T = TypeVar("T", covariant=True)

_FIRST_PAUSE = 0.005
_LONGEST_PAUSE = 0.25


class Receipt(DraftReceipt, Generic[T]):
    """The id of a job, whether this call created it, and ways to wait for it.

    In async code, ``await receipt`` is ``wait()``; ``asyncio.timeout()`` limits it.
    """

    __slots__ = ()

    def wait(self, timeout: timedelta | float | None = None) -> JobRecord:
        """Wait until the job has ended in any way, and return it.

        Raises TimeoutError if it hasn't ended within ``timeout``, and JobNotFound if it is gone. Don't call it in
        requests, which slow work should not hold up, nor inside the transaction that enqueued the job: no worker sees
        the job before the commit.
        """
        pauses = _pauses(timeout)
        while (record := self._look()).status in ACTIVE:
            time.sleep(self._next(pauses, record, timeout))
        return record

    def result(self, timeout: timedelta | float | None = None) -> T:
        """Wait for the job and return its handler's return value. Raise JobFailed if it did not complete.

        The value has the type of the handler's signature if the handler is registered in this process; otherwise it is
        JSON data.
        """
        return self._result_of(self.wait(timeout))

    def __await__(self) -> Generator[Any, None, JobRecord]:
        return self._awaited(None).__await__()

    async def aresult(self, timeout: timedelta | float | None = None) -> T:
        """Async version of ``result()``. It doesn't block the event loop."""
        return self._result_of(await self._awaited(timeout))

    async def _awaited(self, timeout: timedelta | float | None) -> JobRecord:
        pauses = _pauses(timeout)
        look = sync_to_async(self._look)
        while (record := await look()).status in ACTIVE:
            await asyncio.sleep(self._next(pauses, record, timeout))
        return record

    def _look(self) -> JobRecord:
        if self.is_shed:
            raise JobQueueError("Cannot wait for this job: its queue was full, and it was not stored.")
        if backends.current().in_atomic():
            raise JobQueueError(
                f"Cannot wait for job {self.id} inside a transaction: commit first, so that a worker sees the job."
            )
        record = backends.look_up(self.id)
        if record is None:
            raise JobNotFound(self.id)
        return record

    def _next(self, pauses: Iterator[float], record: JobRecord, timeout: timedelta | float | None) -> float:
        pause = next(pauses, None)
        if pause is None:
            raise TimeoutError(f"Job {self.id} ({record.type}) is still {record.status} after {timeout} s.")
        return pause

    def _result_of(self, record: JobRecord) -> T:
        if record.status is not JobStatus.COMPLETED:
            raise JobFailed(record.id, record.type, record.status, record.error or record.end_reason or "")
        is_known = record.type in registry.names
        return cast(T, registry.get(record.type).result.load(record.result) if is_known else record.result)


def _pauses(timeout: timedelta | float | None) -> Iterator[float]:
    """Yield the pauses between two reads of the job, which grow until the timeout."""
    end = None if timeout is None else SYSTEM.monotonic() + duration(timeout, "timeout").total_seconds()
    return _paced(end)


def _paced(end: float | None) -> Iterator[float]:
    pause = _FIRST_PAUSE
    while (left := _LONGEST_PAUSE if end is None else end - SYSTEM.monotonic()) > 0:
        yield min(pause, left)
        pause = min(2 * pause, _LONGEST_PAUSE)
