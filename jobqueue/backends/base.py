"""The contract of a backend: the class that every backend implements, and the ports it offers.

A backend stores and compares. It decides nothing. ``jobqueue.testing.contract`` tests each sentence on every backend.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta

from django.db import DataError, IntegrityError

from jobqueue.backends.ports import ErrorReader, JobReader, Metrics, Operator, WorkerRegistry
from jobqueue.backends.wake import Listener
from jobqueue.clock import Clock
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

#: Decides what becomes of a lease that ran out.
Judge = Callable[[OverdueLease], Settlement]

#: The exceptions that Python and Django raise for a value that can't be converted or stored.
OF_VALUES = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, DataError, IntegrityError)


class Backend(ABC):
    """The place where jobs are kept.

    - The same key never makes two live jobs, however many callers race. The others get the first one's job.
    - A transaction that rolls back leaves nothing: no row, no wake-up, no callback.
    - A job is in at most one live claim, and each claim of it has a new, higher fence.
    - A claim never brings more than was asked for, nor a paused or unknown type, nor a job of a paused queue.
    - Claims come by priority, then ``scheduled_at``, then id. Nothing is claimed before it is due.
    - The first settlement of a claim wins. A later one, or one of an older claim, changes nothing and is refused.
    - ``extend`` extends only what is still held.
    - ``sweep`` never ends a lease that still runs.
    - Every attempt that did not succeed leaves a row of history.

    The verbs here are those of callers and workers. What operators and monitors ask for is in the ports.
    """

    jobs: JobReader
    operator: Operator
    metrics: Metrics
    workers: WorkerRegistry
    errors: ErrorReader

    clock: Clock | None
    """A virtual clock, in tests. ``None`` asks the database, or the system if the database has no clock."""

    patience: float | None = None
    """How many seconds a verb waits for a lock before it raises DatabaseBusy. ``None`` means BUSY_TIMEOUT."""

    owns_session: bool = False
    """Whether this process's connection is a worker's own, without a pooler. Then its verbs may prepare statements."""

    takes_turns: bool = False
    """Whether the atomic handlers of one process can work only one after another."""

    second_look = timedelta(0)
    """The time between the two looks that must find a lease expired. Zero means that one look is enough."""

    @property
    def left_out(self) -> Mapping[str, str]:
        """The jobs that can neither be run nor ended, each with the reason, by id. This process leaves them alone."""
        return {}

    def any_text(self) -> AbstractContextManager[None]:
        """Let this thread read text that another program stored in the wrong encoding."""
        return nullcontext()

    def lies_in_row(self, error: Exception) -> bool:
        """Return whether an error comes from what a row holds, and not from the database or the way to it."""
        return isinstance(error, OF_VALUES)

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
        """Call back after the caller's transaction commits, and never if it rolls back. Outside one, call at once.

        A callback that fails is logged, and affects nothing else.
        """

    @abstractmethod
    def enqueue(self, drafts: Sequence[Draft]) -> list[DraftReceipt]:
        """Store drafts in the caller's transaction, all or none. A draft whose key is taken yields the job that has it.

        A single draft with a free key costs one statement. Raise IdempotencyMismatch for the key of another type.
        """

    # The worker's side

    @abstractmethod
    def cycle(self, owner: str, settlements: Sequence[Settlement] = (), request: ClaimRequest | None = None) -> Cycle:
        """Settle what finished and claim for the free slots, in one transaction.

        - Refused settlements are returned. No part of them is stored.
        - Postponed settlements are neither stored nor refused: other sessions had locked their rows. Offer them again.
        - If fewer jobs came than asked for, ``next_due`` says when to ask again. Zero means at once. ``None`` means
          that nothing is scheduled.
        - Jobs past their expiry are ended instead of claimed.
        - Follow-up jobs are stored with the completion they belong to, and with no other settlement. If one can't be
          stored, the rest is stored all the same.
        """

    def atomic_attempt(self) -> AbstractContextManager[object]:
        """Open the transaction in which an atomic handler works. Wait for the write lock, if there is one."""
        return self.atomic()

    @abstractmethod
    def settle_in_transaction(self, settlement: Settlement) -> tuple[Followed, ...]:
        """Store an outcome and its follow-up jobs inside the transaction the handler worked in.

        Raise LeaseLost if the claim is not held.
        """

    @abstractmethod
    def extend(self, claims: Sequence[Claim], lease: timedelta) -> Extension:
        """Extend claims, so that their leases end ``lease`` from now. Return which are lost, and which are cancelled.

        A claim whose row another session has locked is skipped. It is neither extended nor lost.
        """

    @abstractmethod
    def review(self, claims: Sequence[Claim]) -> Extension:
        """Return, without writing, which claims are lost and which an operator wants stopped."""

    @abstractmethod
    def held_by(self, owner: str) -> list[tuple[str, int]]:
        """Read id and fence of each claim a worker holds. After a lost connection it may hold more than it knows."""

    @abstractmethod
    def progress(self, reports: Sequence[Progress]) -> tuple[Progress, ...]:
        """Store the progress of running jobs. A report of a claim that is not held changes nothing.

        Return the reports that were not stored because another session had locked their rows.
        """

    @abstractmethod
    def sweep(self, judge: Judge, limit: int = 500) -> Sweep:
        """End leases that ran out, as ``judge`` decides, and queued jobs past their expiry, at most ``limit`` of each.

        ``look_again`` asks for another sweep after ``second_look``. On SQLite a lease must have looked expired twice,
        because an atomic handler may have kept its owner from writing.
        """

    @abstractmethod
    def wake(self) -> None:
        """Tell listeners to look. Call it after the commit. Wake-ups that follow each other closely become one."""

    @abstractmethod
    def listen(self) -> Listener:
        """Start to listen for wake-ups."""

    def rest(self) -> None:  # noqa: B027 - most backends have nothing to give back
        """Give back memory after a busy time."""
