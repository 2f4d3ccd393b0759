"""One attempt: its payload, the handler's run, and its result or failure."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import timedelta
from random import SystemRandom
from typing import Any, NamedTuple

from django.db import InterfaceError, InternalError, OperationalError
from django.db.transaction import TransactionManagementError

from jobqueue import backends, tracing
from jobqueue.clock import SYSTEM
from jobqueue.errors import (
    Cancel,
    Interrupted,
    LeaseLost,
    PayloadInvalid,
    PayloadTooNew,
    ResultRefused,
    Snooze,
    StopReason,
    duration,
)
from jobqueue.handlers import ambient
from jobqueue.handlers.context import Drafting
from jobqueue.handlers.lanes import with_all_keys
from jobqueue.handlers.registry import JobType, registry
from jobqueue.observe.failures import failure_of
from jobqueue.policy.retry import Exponential, RetryPolicy, decide, decide_cut_short
from jobqueue.policy.settling import completed, released, settled
from jobqueue.records import (
    Again,
    Assignment,
    AttemptCount,
    Decision,
    Draft,
    Ending,
    Failure,
    Followed,
    Settlement,
    Stopped,
)
from jobqueue.records.outcome import MESSAGE_LIMIT, storable
from jobqueue.worker.executor import forks

#: The system's random source: two forked processes never draw the same numbers.
_dice = SystemRandom()
_NO_POLICY = RetryPolicy()
_USUAL = nullcontext()
#: Errors of a database that is out of reach, or can't begin a transaction.
_TROUBLE = (OperationalError, InterfaceError, InternalError)
_OUT_OF_REACH = f"{OperationalError.__module__}.{OperationalError.__qualname__}"
#: Seconds until an attempt that could not begin is repeated, doubled each time up to the longest pause.
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 30.0
_MOST_DOUBLINGS = 6

_ENDINGS: tuple[tuple[type[BaseException], Ending], ...] = (
    (Snooze, Ending.SNOOZED),
    (Cancel, Ending.CANCELLED),
    (PayloadTooNew, Ending.RELEASED),
    (PayloadInvalid, Ending.INVALID),
)


class Outcome(NamedTuple):
    """The outcome of an attempt. Without a settlement the claim is lost, and there is nothing to store.

    ``stored`` is true if the handler's own transaction has stored it; ``followed`` are its follow-up jobs.
    """

    settlement: Settlement | None
    stored: bool = False
    followed: tuple[Followed, ...] = ()

    @property
    def is_for_want_of_database(self) -> bool:
        """Return whether the attempt failed because a database could not be reached or written to."""
        failure = self.settlement.failure if self.settlement else None
        return failure is not None and failure.error_class == _OUT_OF_REACH


class Running:
    """A running attempt, which serves the requests of its context."""

    __slots__ = (
        *("_report", "assignment", "began", "children", "generation", "is_at_work", "kind", "reason", "reported"),
        "trace",
    )

    def __init__(self, assignment: Assignment, report: Callable[[Assignment, str], None]) -> None:
        self.assignment = assignment
        self.began = SYSTEM.monotonic()
        self.generation = forks.generation
        #: Whether it has begun. An atomic handler may wait in line first.
        self.is_at_work = False
        self.children: tuple[Draft, ...] = ()
        self.kind: JobType | None = None
        self.reason: StopReason | None = None
        #: The last progress report. Reports arrive after outcomes, and are refused once the job has ended.
        self.reported: str | None = None
        #: Its trace, in a process that traces jobs.
        self.trace: tracing.AttemptTrace | None = None
        self._report = report

    def report(self, text: str) -> None:
        self.reported = text
        self._report(self.assignment, text)

    def stop_reason(self) -> StopReason | None:
        return self.reason

    def follow(self, target: Drafting | str, args: tuple[Any, ...], fields: dict[str, Any]) -> Draft:
        handler = registry.get(target) if isinstance(target, str) else target
        draft, own = handler.draft(*args, **fields), self.assignment
        tenant = draft.tenant or own.tenant
        inherited = own.workspace if tenant == own.tenant else None  # workspaces belong to a tenant
        draft = replace(draft, parent_id=own.id, tenant=tenant, workspace=draft.workspace or inherited)
        draft = tracing.follow_up(with_all_keys(registry.get(draft.type), draft))
        self.children = (*self.children, draft)
        return draft

    def completed(self, kind: JobType, value: object) -> Settlement:
        """Return the settlement that stores the handler's return value."""
        made = completed(self.assignment, kind.result.dump(value))
        return made._replace(children=self.children) if self.children else made

    def with_report(self, made: Settlement) -> Settlement:
        """Return the settlement with the last progress report."""
        return made if self.reported is None else made._replace(progress=self.reported)


def perform(running: Running) -> Outcome:
    """Run a handler to its end, and return the outcome."""
    try:
        _begin_trace(running)
        return _traced(running, run(running))
    except BaseException as error:  # SystemExit ends this attempt, not the worker
        return failed(running, error)


async def perform_async(running: Running) -> Outcome:
    """Run a coroutine handler to its end, and return the outcome."""
    try:
        _begin_trace(running)
        return _traced(running, await run_async(running))
    except BaseException as error:
        return failed(running, error)


def _begin_trace(running: Running) -> None:
    """Begin the trace of an attempt, if jobs are traced."""
    running.trace = tracing.begin(running.assignment)
    if running.trace is not None and running.reason not in (None, StopReason.SHUTDOWN):
        raise Interrupted(running.reason)  # a tracing library may have caught the interruption


def _traced(running: Running, outcome: Outcome, error: BaseException | None = None) -> Outcome:
    if running.trace is None:
        return outcome
    return outcome._replace(settlement=running.trace.end(outcome.settlement, error))


def failed(running: Running, error: BaseException) -> Outcome:
    """End the trace of an attempt that did not succeed, and return its outcome."""
    return _traced(running, settle_failure(running, error), error)


def run(running: Running) -> Outcome:
    """Run a handler, and return the outcome of its completion, or raise the handler's error."""
    kind = running.kind = registry.get(running.assignment.type)
    with _surroundings(running):
        if kind.atomic:
            return _in_transaction(kind, running)
        running.is_at_work = True
        return Outcome(running.completed(kind, _called(kind, running)))


async def run_async(running: Running) -> Outcome:
    """Run a coroutine handler, and return the outcome of its completion, or raise the handler's error."""
    kind = running.kind = registry.get(running.assignment.type)
    with _surroundings(running):
        running.is_at_work = True
        return Outcome(running.completed(kind, await _awaited(kind, running)))


def _called(kind: JobType, running: Running) -> Any:
    """Call a handler. A child process that it forked ends here."""
    try:
        value = kind.call(running.assignment, running)
    except BaseException as error:
        forks.end_copy(running.generation, error)
        raise
    forks.end_copy(running.generation)
    return value


async def _awaited(kind: JobType, running: Running) -> Any:
    try:
        value = await kind.call(running.assignment, running)
    except BaseException as error:
        forks.end_copy(running.generation, error)
        raise
    forks.end_copy(running.generation)
    return value


def _in_transaction(kind: JobType, running: Running) -> Outcome:
    """Run a handler in one transaction with its completion, which is the transaction's last write."""
    backend = backends.current()
    is_within_another = backend.in_atomic()
    with backend.atomic_attempt():
        running.is_at_work = True
        settlement = running.with_report(running.completed(kind, _called(kind, running)))
        followed = backend.settle_in_transaction(settlement)
        if followed:
            backend.wake_on_commit()
    if backend.in_atomic() and not is_within_another:  # the block that ended was the handler's, inside ours
        raise TransactionManagementError(
            f"The handler of job {running.assignment.id} left a transaction open, so neither its writes nor its "
            "completion were committed. A handler must leave each atomic block that it enters."
        )
    return Outcome(settlement, stored=True, followed=followed)


def settle_failure(running: Running, error: BaseException) -> Outcome:
    """Return the outcome of an attempt that did not succeed."""
    asked = running.reason if isinstance(error, (Interrupted, CancelledError)) else None
    if asked and isinstance(error, CancelledError):
        error = _interrupted(error)
    if asked and isinstance(error, Interrupted):
        error.reason = asked  # raised from outside, without the reason
    if asked is StopReason.LEASE_LOST or isinstance(error, LeaseLost):
        return Outcome(None)
    if asked is StopReason.SHUTDOWN:
        return Outcome(released(running.assignment, "its worker stopped"))
    if asked is StopReason.TIME_LIMIT and not running.is_at_work:
        return Outcome(released(running.assignment, "its time was up before its turn came"))
    if not running.is_at_work and isinstance(error, _TROUBLE):
        return Outcome(_unbegun(running, error))
    decision = _decision(running, error, asked)
    return Outcome(settled(running.assignment, decision, _failure(running, error, _ending(error, asked))))


def refused(running: Running, size: int) -> Settlement:
    """Give up a job whose handler has succeeded, but whose result and follow-up jobs exceed one message."""
    error = ResultRefused(
        f"The result, the follow-up jobs and the last progress report of this attempt have {size:,} characters in "
        f"total, which is too much. Enqueue further jobs from a follow-up job."
    )
    return settled(running.assignment, _decision(running, error, None), _failure(running, error, Ending.FAILED))


def _interrupted(error: CancelledError) -> Interrupted:
    """Return an Interrupted with the context of a coroutine's CancelledError."""
    made = Interrupted().with_traceback(error.__traceback__)
    made.__cause__, made.__context__, made.__suppress_context__ = (
        error.__cause__,
        error.__context__,
        error.__suppress_context__,
    )
    return made


def _failure(running: Running, error: BaseException, ending: Ending) -> Failure:
    return failure_of(
        error,
        ending,
        job_type=running.assignment.type,
        payload=running.assignment.payload,
        duration=timedelta(seconds=SYSTEM.monotonic() - running.began),
    )


def _unbegun(running: Running, error: BaseException) -> Settlement:
    """Return the settlement of an attempt whose transaction could not begin. It isn't counted.

    The claims that were not counted show how often the job was given back before, for this or another reason.
    """
    own, failure = running.assignment, _failure(running, error, Ending.RELEASED)
    doublings = max(0, min(own.fence - own.attempt, _MOST_DOUBLINGS))
    pause = min(_FIRST_PAUSE * 2**doublings, _LONGEST_PAUSE) * _dice.uniform(1.0, 1.5)
    words = f"its handler did not begin: {failure.message}"
    return released(own)._replace(
        delay=timedelta(seconds=pause), failure=replace(failure, message=storable(words, MESSAGE_LIMIT))
    )


def _ending(error: BaseException, asked: StopReason | None) -> Ending:
    if asked is not None:
        return Ending.CANCELLED if asked is StopReason.CANCELLED else Ending.TIMED_OUT
    return next((ending for kind, ending in _ENDINGS if isinstance(error, kind)), Ending.FAILED)


def _decision(running: Running, error: BaseException, asked: StopReason | None) -> Decision:
    attempt = AttemptCount(running.assignment.attempt, running.assignment.max_retries)
    policy = running.kind.policy if running.kind else _NO_POLICY
    if asked is StopReason.CANCELLED:
        return Stopped("cancelled")
    if asked is StopReason.TIME_LIMIT:
        return decide_cut_short(policy, attempt, "timed out", rng=_dice)
    try:
        decision = decide(policy, attempt, error, rng=_dice)
        return Again(duration(decision.after, "delay")) if isinstance(decision, Again) else decision
    except Exception as mistake:  # the policy's function failed; the job must not suffer for it
        mistake.add_note(f"raised by the retry function of {running.assignment.type}; the default delay is used")
        if error.__cause__ is None:
            error.__cause__ = mistake
        return decide(replace(policy, delay=Exponential()), attempt, error, rng=_dice)


def _surroundings(running: Running) -> AbstractContextManager[None]:
    carried, trace = running.assignment.context, running.trace
    return ambient.restore(carried, is_traced=trace is not None and trace.is_current) if carried else _USUAL
