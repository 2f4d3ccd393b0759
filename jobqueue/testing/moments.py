"""A virtual clock that, as it moves, does what the queue does at each moment that it passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from jobqueue import backends
from jobqueue.backends.base import Backend
from jobqueue.clock import SYSTEM
from jobqueue.policy.leases import settle_overdue
from jobqueue.records import Filter
from jobqueue.states import JobStatus
from jobqueue.testing.attempts import AttemptReport
from jobqueue.testing.clock import VirtualClock
from jobqueue.testing.due_jobs import Drain, Errors

#: More jobs than a test has.
_MANY = 10_000
#: A lease has expired once its last moment is over.
_OVER = timedelta(microseconds=1)

#: Does what is due at the moment of the backend's clock. Returns the next moment at which something will be due.
Turn = Callable[[Drain], datetime | None]


def end_leases(drain: Drain) -> datetime | None:
    """End expired leases, and queued jobs past their expiry."""
    backend = drain.backend
    swept = backend.sweep(settle_overdue)
    if swept.look_again:
        return backend.now() + backend.second_look
    rows = backend.jobs.find(Filter(statuses=frozenset({JobStatus.IN_PROGRESS, JobStatus.QUEUED})), _MANY)
    ends = [row.lease_until + _OVER for row in rows if row.lease_until is not None]
    expiries = [row.expires_at for row in rows if row.status is JobStatus.QUEUED and row.expires_at is not None]
    now = backend.now()  # what another session has locked is over, and still there
    return min((moment for moment in (*ends, *expiries) if moment > now), default=None)


def run_due_jobs(drain: Drain) -> datetime | None:
    """Run the jobs that are due, among them retries and snoozed jobs."""
    drain.run()
    return None if drain.next_due is None else drain.backend.now() + drain.next_due


#: What happens at a moment, in this order. What has moments of its own has its turn here.
TURNS: tuple[Turn, ...] = (end_leases, run_due_jobs)


class QueueClock(VirtualClock):
    """The clock of a backend. ``advance`` stops at each moment at which something is due, and does it.

    At such a moment leases and jobs expire, and the jobs that are due are run as by ``drain``.
    """

    def __init__(self, backend: Backend, start: datetime | None = None, *, errors: Errors = "collect") -> None:
        super().__init__(SYSTEM.now() if start is None else start)
        self.backend = backend
        self.errors = errors

    def advance(self, length: timedelta | float = 0.0, **units: float) -> list[AttemptReport]:
        """Let time pass, do what becomes due, and return the attempts. Takes lengths like ``VirtualClock.advance``."""
        self._reports: list[AttemptReport] = []
        super().advance(length, **units)
        return self._reports

    def _pass(self, step: timedelta) -> None:
        end = self.now() + step
        while (moment := self._act()) is not None and moment <= end:
            super()._pass(max(moment - self.now(), timedelta(0)))
        if end > self.now():
            super()._pass(end - self.now())

    def _act(self) -> datetime | None:
        drain = Drain(self.backend, errors=self.errors, retries=False)
        try:
            return min((moment for turn in TURNS if (moment := turn(drain)) is not None), default=None)
        finally:
            self._reports += drain.reports


@contextmanager
def virtual_time(start: datetime | None = None, *, errors: Errors = "collect") -> Iterator[QueueClock]:
    """Put the queue on a virtual clock, which starts now or at the given moment.

    Handlers and other code that ask Django for the time get the real one.
    """
    backend = backends.current()
    before, clock = backend.clock, QueueClock(backend, start, errors=errors)
    backend.clock = clock
    try:
        yield clock
    finally:
        backend.clock = before
