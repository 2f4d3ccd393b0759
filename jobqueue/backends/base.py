"""The contract of a backend, sentence by sentence. A backend keeps and compares; it decides nothing.

``jobqueue.testing.contract`` tests what it says over every backend.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta

from django.db import DataError, IntegrityError

from jobqueue.backends.wake import Listener
from jobqueue.clock import Clock
from jobqueue.records import (
    Amendment,
    Caps,
    Claim,
    ClaimRequest,
    Cycle,
    DeadLetters,
    Depth,
    Draft,
    ErrorGroup,
    ErrorGroups,
    Expired,
    Extension,
    Filter,
    Followed,
    Handled,
    JobRecord,
    Part,
    Pause,
    Progress,
    QueueStats,
    Receipt,
    Scope,
    Settlement,
    Stretch,
    Sweep,
    Tally,
    WorkerRecord,
)
from jobqueue.records.metric import COUNTED_TO, MOST_GROUPS


class Backend(ABC):
    """Where jobs are kept.

    - The same key never makes two live jobs, whoever races; the second caller gets the first one's job.
    - A transaction that rolls back leaves nothing: no row, no wake-up, no callback.
    - A job is in at most one live claim, and each claim of it has a new, higher fence.
    - A claim brings never more than asked, never a paused or unknown type, never from a paused queue.
    - Claims come by priority, then ``scheduled_at``, then id; nothing is claimed before it is due.
    - The first settlement of a claim wins; a later one, or one of an older claim, changes nothing and is refused.
    - ``extend`` keeps only what is still held.
    - ``sweep`` never ends a lease that still runs.
    - Every attempt that did not succeed leaves a row of history.
    """

    clock: Clock | None
    """A virtual clock, in tests; ``None`` asks the database, or the system where the database has no clock."""

    patience: float | None = None
    """How many seconds a verb waits for a lock before it raises DatabaseBusy; ``None`` takes BUSY_TIMEOUT."""

    owns_session: bool = False
    """Whether this process's connection is a worker's own, with no pooler between: then its verbs may prepare it."""

    takes_turns: bool = False
    """Whether the atomic handlers of one process can only work one after another."""

    second_look = timedelta(0)
    """How far apart the two looks are that end a lease; zero where one look does."""

    @property
    def left_out(self) -> Mapping[str, str]:
        """The jobs that can neither be run nor ended, by id, each with the reason: this process leaves them alone."""
        return {}

    def any_text(self) -> AbstractContextManager[None]:
        """Let this thread read text of other programs that is not in the database's encoding."""
        return nullcontext()

    def lies_in_row(self, error: Exception) -> bool:
        """Whether an error comes of what a row holds; else it comes of the database, or of the way to it."""
        of_values = ArithmeticError | AttributeError | LookupError | TypeError | ValueError
        return isinstance(error, DataError | IntegrityError | of_values)

    def bound_silence(self, seconds: float) -> None:  # noqa: B027 - where there is no server, nothing is to do
        """Have what this thread asks, and the listeners it begins, break where a server is silent for so long."""

    # The caller's side

    @abstractmethod
    def atomic(self) -> AbstractContextManager[object]:
        """Open a transaction of the caller's, or a savepoint within one."""

    @abstractmethod
    def in_atomic(self) -> bool:
        """Say whether the caller is inside a transaction of this backend's database."""

    @abstractmethod
    def on_commit(self, callback: Callable[[], object]) -> None:
        """Call back once the caller's transaction commits, at once outside one, never if it rolls back.

        A callback that fails is logged and harms nobody.
        """

    @abstractmethod
    def enqueue(self, drafts: Sequence[Draft]) -> list[Receipt]:
        """Store drafts in the caller's transaction, all or none; a draft whose key is taken yields the job that has it.

        One draft whose key is free costs one statement. Raises IdempotencyMismatch for the key of another type.
        """

    # The worker's side

    @abstractmethod
    def cycle(self, owner: str, settlements: Sequence[Settlement] = (), request: ClaimRequest | None = None) -> Cycle:
        """Settle what finished and claim for the free slots, in one transaction.

        Refused settlements come back; nothing of them was stored. Where fewer jobs came than asked, ``next_due`` says
        when it is worth asking again: zero means at once, ``None`` that nothing is scheduled. Jobs past their expiry
        that a claim meets are ended by it. Follow-up jobs are stored with the completion they belong to, and with no
        other settlement; one that cannot be stored harms nothing else. Postponed settlements are neither stored nor
        refused: their rows were locked by others; offer them again.
        """

    def atomic_attempt(self) -> AbstractContextManager[object]:
        """Open the transaction in which an atomic handler works, waiting for the write lock where there is one."""
        return self.atomic()

    @abstractmethod
    def settle_in_transaction(self, settlement: Settlement) -> tuple[Followed, ...]:
        """Store an outcome and its follow-up jobs inside the transaction the handler worked in.

        Raises LeaseLost if the claim is not held.
        """

    @abstractmethod
    def extend(self, claims: Sequence[Claim], lease: timedelta) -> Extension:
        """Hold claims for another ``lease`` from now; tell which are lost and which an operator wants stopped.

        A claim whose row is locked, for its handler is about to settle, is skipped: neither extended nor lost.
        """

    @abstractmethod
    def review(self, claims: Sequence[Claim]) -> Extension:
        """Tell, without a write, which claims are lost and which an operator wants stopped."""

    @abstractmethod
    def held_by(self, owner: str) -> list[tuple[str, int]]:
        """Read id and fence of each claim a worker holds; after a lost connection they may be more than it knows."""

    @abstractmethod
    def progress(self, reports: Sequence[Progress]) -> tuple[Progress, ...]:
        """Note how far running jobs are; a report of a claim that is not held changes nothing.

        Those come back, and are not noted, whose rows were locked by others.
        """

    @abstractmethod
    def sweep(self, judge: Callable[[Expired], Settlement], limit: int = 500) -> Sweep:
        """End leases that ran out, as ``judge`` says, and queued jobs past their expiry, at most ``limit`` of each.

        ``look_again`` asks for another look after ``second_look``: on SQLite a lease must have looked expired twice,
        for a transactional handler may have kept its owner from writing.
        """

    @abstractmethod
    def wake(self) -> None:
        """Tell listeners to look. Call it after the commit; wake-ups that follow each other closely are one."""

    @abstractmethod
    def listen(self) -> Listener:
        """Start to listen for wake-ups."""

    def rest(self) -> None:  # noqa: B027 - most have nothing to give back
        """Give back memory: a worker that was busy has nothing to do."""

    # The registry of workers

    @abstractmethod
    def enlist(self, worker: WorkerRecord) -> None:
        """Note that a worker is up, as of now, and forget those that have been silent for a day."""

    @abstractmethod
    def dismiss(self, owner: str) -> None:
        """Forget a worker that ended."""

    @abstractmethod
    def workers(self) -> list[WorkerRecord]:
        """List the workers that enlisted, by name; those that died too, until they are forgotten."""

    # Figures

    @abstractmethod
    def tally(self, moment: datetime, tallies: Sequence[Tally]) -> bool:
        """Add what came of attempts to the stretches of time that a moment falls into; say whether it was added.

        It is added as a whole, or, where another has a row of it locked, not at all: nobody waits for figures.
        It counts for its queue and type, for its queue, and in total; without a type, or either, for what is left. So
        does what goes beyond ``MOST_GROUPS`` queues and types, or queues, in one stretch.
        """

    @abstractmethod
    def sample(self, moment: datetime) -> bool:
        """Note the depth, unless it was noted in the same minute; say whether it is noted now.

        It is noted of each queue and type, of each queue and in total. Figures that are too old are deleted on the way.
        """

    @abstractmethod
    def depths(self, cap: int = COUNTED_TO, most: int = MOST_GROUPS) -> list[Depth]:
        """Count what waits and runs by queue and type, each up to ``cap``, of at most ``most`` of such groups.

        Where there are many of them, each is counted less far. What it costs depends on that, and not on how much
        there is.
        """

    @abstractmethod
    def tallied(self, span: int, since: datetime, queue: str = "", job_type: str = "") -> list[Stretch]:
        """Read the figures of stretches of one length that began at a moment or later, the oldest first.

        There is one of each: of all together, of the queue as a whole, of the type in all its queues, or of the type in
        the queue, whichever was named.
        """

    @abstractmethod
    def parts(self, by: Scope, span: int, since: datetime, queue: str = "", job_type: str = "") -> list[Part]:
        """Sum up the same by type or by queue, in the order of their names; what was not told apart is not in it."""

    # The operator's side

    @abstractmethod
    def get(self, job_id: str) -> JobRecord | None:
        """Read one job with its history."""

    @abstractmethod
    def stats(self) -> list[QueueStats]:
        """Count what waits and what runs, by queue and type."""

    @abstractmethod
    def dead_letters(self) -> list[DeadLetters]:
        """Count the dead letters, by queue and type."""

    @abstractmethod
    def error_groups(self, limit: int, caps: Caps) -> ErrorGroups:
        """Sum up the dead letters by fingerprint: at most ``limit`` groups, those first that were added to last.

        Whatever is counted stops at its share of ``caps``. Of more than a thousand fingerprints some are not found.
        """

    @abstractmethod
    def error_group(self, fingerprint: str, caps: Caps) -> ErrorGroup | None:
        """Sum up the dead letters of one fingerprint; of the empty one, those that have none."""

    @abstractmethod
    def find(
        self, wanted: Filter, limit: int, after_id: str | None = None, newest_first: bool = False
    ) -> list[JobRecord]:
        """Read jobs that a filter lets through, without their history, in order of id, from behind ``after_id`` on."""

    @abstractmethod
    def find_ids(self, wanted: Filter, limit: int, after_id: str | None = None) -> list[str]:
        """Read the ids of jobs as ``find`` does, and nothing of what may be large."""

    @abstractmethod
    def count(self, wanted: Filter, cap: int | None = None) -> int:
        """Count the jobs that a filter lets through, up to ``cap``."""

    @abstractmethod
    def ahead_of(self, job: JobRecord, cap: int) -> int:
        """Count, up to ``cap``, the due jobs that a claim would take before this one; paused ones are not."""

    @abstractmethod
    def now(self) -> datetime:
        """Ask the clock that judges leases."""

    @abstractmethod
    def retry(self, ids: Sequence[str], after: timedelta = timedelta(0), every: timedelta = timedelta(0)) -> Handled:
        """Put failed jobs and dead letters back into their queues, with all their attempts and their history.

        The first is due after ``after``, and each of the others, in the order given, ``every`` later.
        """

    @abstractmethod
    def retry_edited(self, job_id: str, payload: str, payload_version: int, seen: datetime | None = None) -> Handled:
        """Put a failed job or a dead letter back with another payload, JSON text; its context keeps the first one.

        With ``seen``, when it was updated last as the caller knows it, one that was updated since is refused.
        """

    @abstractmethod
    def amend(self, ids: Sequence[str], amendment: Amendment) -> Handled:
        """Change when, where or how soon queued jobs are run; others are refused."""

    @abstractmethod
    def cancel(self, ids: Sequence[str]) -> Handled:
        """End queued jobs as failed, and ask running ones to stop."""

    @abstractmethod
    def purge(self, ids: Sequence[str]) -> Handled:
        """Delete jobs and their history; a running one is refused."""

    @abstractmethod
    def pause(self, scope: Scope, name: str, reason: str = "") -> bool:
        """Let no claim that starts from now on take from a queue or of a type; say whether it was running before."""

    @abstractmethod
    def resume(self, scope: Scope, name: str) -> bool:
        """Undo a pause; say whether there was one."""

    @abstractmethod
    def pauses(self) -> list[Pause]:
        """List what is paused."""
