"""The contract of a backend: the class that every backend implements, and the ports it offers.

A backend stores jobs and compares claims, and makes no decisions. ``jobqueue.testing.contract`` tests each sentence.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta

from django.db import DataError, IntegrityError

from jobqueue.backends.ports import (
    Alerts,
    DutyRoster,
    ErrorReader,
    Gauges,
    HealthReader,
    JobReader,
    Lanes,
    Limits,
    Metrics,
    Operator,
    OutstandingReader,
    Retention,
    Schedules,
    SetupReader,
    StorageReader,
    Turns,
    WorkerRegistry,
)
from jobqueue.backends.wake import Listener
from jobqueue.clock import SYSTEM, Clock
from jobqueue.policy.limits.limits import LimitBook
from jobqueue.records import (
    Claim,
    ClaimRequest,
    Cycle,
    Draft,
    DraftReceipt,
    Extension,
    Followed,
    OverdueLease,
    Progress,
    Settlement,
    Sweep,
)

#: Decides how a claim is settled whose lease has expired, or whose worker is dead.
Judge = Callable[[OverdueLease], Settlement]

#: The exceptions that Python and Django raise for a value that can't be converted or stored.
OF_VALUES = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, DataError, IntegrityError)


#: No limits at all.
NO_LIMITS = LimitBook()


class Backend(ABC):
    """The place where jobs are kept.

    - Of the callers that enqueue with the same key, only the first makes a job. The others get that job.
    - A transaction that rolls back leaves nothing: no row, no wake-up, no callback.
    - A job is in at most one live claim, and each claim of it has a new, higher fence.
    - A claim never takes more jobs than requested, nor jobs of a paused queue, a paused type or an unknown type.
    - Claims come by priority, then ``scheduled_at``, then id. Nothing is claimed before it is due. A backend that skips
      jobs claimed long ago may find a job that was committed there late only after some seconds, unless ``wake`` says
      how old it is.
    - Only the first settlement of a claim is stored. Later ones, and those of older claims, are refused.
    - ``extend`` renews the leases only of claims that are still held.
    - ``sweep`` never ends a lease before it expires. ``end_claims`` does, for the claims of one worker.
    - Every attempt that did not succeed leaves a row of history.

    This class has the methods for callers and workers. The methods for operators and monitors are in the ports.
    """

    jobs: JobReader
    operator: Operator
    metrics: Metrics
    workers: WorkerRegistry
    duties: DutyRoster
    retention: Retention
    errors: ErrorReader
    storage: StorageReader
    health: HealthReader
    schedules: Schedules
    gauges: Gauges = Gauges()
    alerts: Alerts = Alerts()
    limits: Limits
    lanes: Lanes
    turns: Turns
    outstanding: OutstandingReader
    setup: SetupReader = SetupReader()

    clock: Clock | None
    """A virtual clock, in tests. ``None`` asks the database, or the system if the database has no clock."""

    patience: float | None = None
    """How many seconds a method waits for a lock before it raises DatabaseBusy. ``None`` means BUSY_TIMEOUT."""

    owns_session: bool = False
    """Whether a worker's connection keeps one session of the server. If so, methods may use prepared statements."""

    takes_turns: bool = False
    """Whether the atomic handlers of one process can work only one after another."""

    second_look = timedelta(0)
    """How long after a sweep first finds a lease expired it may be ended. Zero means at once."""

    @property
    def left_out(self) -> Mapping[str, str]:
        """The jobs that this process leaves alone, because they can neither be run nor ended: reasons by id."""
        return {}

    @property
    def book(self) -> LimitBook:
        """The limits in force when this process last claimed jobs."""
        return NO_LIMITS

    def any_text(self) -> AbstractContextManager[None]:
        """Let this thread read text that another program stored in the wrong encoding."""
        return nullcontext()

    def lies_in_row(self, error: Exception) -> bool:
        """Return whether a value in a row caused an error, rather than the database or the connection."""
        return isinstance(error, OF_VALUES)

    def answering_within(self, seconds: float) -> AbstractContextManager[object]:
        """Inside, fail this thread's statements if the server is silent for ``seconds``, so that a page can say so."""
        return nullcontext()

    def bound_silence(self, seconds: float) -> None:  # noqa: B027 - without a server there is nothing to do
        """Fail this thread's statements, and listeners that it starts, if the server is silent for ``seconds``."""

    # The caller's side

    @abstractmethod
    def atomic(self) -> AbstractContextManager[object]:
        """Open a transaction for the caller, or a savepoint inside one."""

    @abstractmethod
    def in_atomic(self) -> bool:
        """Return whether the caller is inside a transaction of this backend's database."""

    @abstractmethod
    def now(self) -> datetime:
        """Return the time by which leases are judged."""

    @abstractmethod
    def on_commit(self, callback: Callable[[], object]) -> None:
        """Call a function after the caller's transaction commits, or at once if there is no transaction.

        If the transaction rolls back, the function isn't called. If the function fails, the error is only logged.
        """

    @abstractmethod
    def enqueue(self, drafts: Sequence[Draft]) -> list[DraftReceipt]:
        """Store drafts in the caller's transaction, all or none. For a taken key, return the job that has it.

        A single draft with a free key costs one statement. Raise IdempotencyMismatch if the job with the key has
        another type.
        """

    # The worker's side

    @abstractmethod
    def cycle(self, owner: str, settlements: Sequence[Settlement] = (), request: ClaimRequest | None = None) -> Cycle:
        """Store settlements and claim jobs for the free slots, in one transaction.

        - Refused settlements are returned. No part of them is stored.
        - Postponed settlements are neither stored nor refused: other sessions had locked their rows. Offer them again.
        - If there were fewer jobs than requested, ``next_due`` says when to claim again. Zero means at once. ``None``
          means that nothing is scheduled.
        - Jobs past their expiry are ended instead of claimed.
        - Follow-up jobs are stored with the completion they belong to, and with no other settlement. If one can't be
          stored, the others are still stored.
        """

    def atomic_attempt(self) -> AbstractContextManager[object]:
        """Open the transaction of an atomic handler. If the database has a write lock, wait for it."""
        return self.atomic()

    @abstractmethod
    def settle_in_transaction(self, settlement: Settlement) -> tuple[Followed, ...]:
        """Store an outcome and its follow-up jobs inside the transaction the handler worked in.

        Raise LeaseLost if the claim is not held.
        """

    @abstractmethod
    def extend(self, claims: Sequence[Claim], lease: timedelta) -> Extension:
        """Renew the leases of claims, to expire ``lease`` from now. Return the lost and the cancelled claims.

        A claim whose row another session has locked is skipped. It is neither renewed nor lost.
        """

    @abstractmethod
    def review(self, claims: Sequence[Claim]) -> Extension:
        """Return which claims are lost and which an operator has cancelled, without writing."""

    @abstractmethod
    def held_by(self, owner: str) -> list[tuple[str, int]]:
        """Read id and fence of each claim that a worker holds, including claims that the worker doesn't know of."""

    @abstractmethod
    def progress(self, reports: Sequence[Progress]) -> tuple[Progress, ...]:
        """Store the progress of running jobs. A report of a claim that is not held changes nothing.

        Return the reports that were not stored because another session had locked their rows.
        """

    @abstractmethod
    def sweep(self, judge: Judge, limit: int = 500) -> Sweep:
        """End expired leases, as ``judge`` decides, and queued jobs past their expiry, at most ``limit`` of each.

        If ``look_again`` is set in the result, sweep again after ``second_look``. On SQLite two sweeps must find a
        lease expired before it ends, because an atomic handler may have kept the worker from renewing it.
        """

    @abstractmethod
    def end_claims(self, owner: str, judge: Judge, limit: int = 500) -> tuple[Settlement, ...]:
        """End the claims of a worker that is proved dead, as ``judge`` decides, whether or not their leases still run.

        Return what was settled, at most ``limit``. Claims whose rows other sessions have locked are left.
        """

    @abstractmethod
    def wake(self, age: float = 0.0) -> None:
        """Tell listeners to look for jobs. Call this after the commit. Wake-ups in quick succession are combined.

        ``age`` says how many seconds ago the oldest of the committed jobs became due.
        """

    def wake_on_commit(self, age: float = 0.0) -> None:
        """Wake listeners after the caller's transaction commits, when the jobs are older by the time it took."""
        began = SYSTEM.monotonic()
        self.on_commit(lambda: self.wake(age + SYSTEM.monotonic() - began))

    @abstractmethod
    def listen(self) -> Listener:
        """Start to listen for wake-ups."""

    def forget_throttles(self) -> None:  # noqa: B027 - memory has none to delete
        """Delete what was kept for throttled keys whose time is over."""

    def rest(self) -> None:  # noqa: B027 - most backends have nothing to give back
        """Give back memory after a busy time."""
