"""One attempt: read the payload, run the handler, and write its result or describe its failure."""

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

from jobqueue import backends
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
from jobqueue.handlers.carried import set_down
from jobqueue.handlers.context import Drafting
from jobqueue.handlers.registry import JobType, registry
from jobqueue.observe.failures import failure_of
from jobqueue.policy.retry import Exponential, RetryPolicy, decide, decide_cut_short
from jobqueue.policy.settling import completed, released, settled
from jobqueue.records import Again, Assignment, Attempt, Decision, Draft, Ending, Failure, Followed, Settlement, Stopped
from jobqueue.records.outcome import MESSAGE_LIMIT, storable
from jobqueue.worker.executor import forks

#: The system's own dice: those of two forked processes never fall alike.
_dice = SystemRandom()
_NO_POLICY = RetryPolicy()
_USUAL = nullcontext()
#: What says that the database is out of reach, or will not have a transaction begin.
_TROUBLE = (OperationalError, InterfaceError, InternalError)
_OUT_OF_REACH = f"{OperationalError.__module__}.{OperationalError.__qualname__}"
#: Seconds until an attempt that could not begin is made again: twice as long after each, up to the last.
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
    """What an attempt came to. Without a settlement there is nothing to offer: the claim is lost.

    ``stored`` tells of one that the handler's own transaction has stored, with what became of its follow-up jobs.
    """

    settlement: Settlement | None
    stored: bool = False
    followed: tuple[Followed, ...] = ()

    @property
    def is_for_want_of_database(self) -> bool:
        """Whether the attempt failed by what a database says that cannot be reached, or written to."""
        failure = self.settlement.failure if self.settlement else None
        return failure is not None and failure.error_class == _OUT_OF_REACH


class Running:
    """An attempt while it runs; what its context asks for goes through here."""

    __slots__ = ("_report", "assignment", "began", "children", "generation", "is_at_work", "kind", "reason", "reported")

    def __init__(self, assignment: Assignment, report: Callable[[Assignment, str], None]) -> None:
        self.assignment = assignment
        self.began = SYSTEM.monotonic()
        self.generation = forks.generation
        #: Whether its turn has come; an atomic handler may wait in line before.
        self.is_at_work = False
        self.children: tuple[Draft, ...] = ()
        self.kind: JobType | None = None
        self.reason: StopReason | None = None
        #: What it reported last. Reports travel behind outcomes, and are refused once the job has ended.
        self.reported: str | None = None
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
        inherited = own.workspace if tenant == own.tenant else None  # it is one of the tenant's
        draft = replace(draft, parent_id=own.id, tenant=tenant, workspace=draft.workspace or inherited)
        self.children = (*self.children, draft)
        return draft

    def completed(self, kind: JobType, value: object) -> Settlement:
        """Make of what the handler returned the settlement that stores it."""
        made = completed(self.assignment, kind.result.dump(value))
        return made._replace(children=self.children) if self.children else made

    def with_report(self, made: Settlement) -> Settlement:
        """Have a settlement carry the last report."""
        return made if self.reported is None else made._replace(progress=self.reported)


def perform(running: Running) -> Outcome:
    """Run a handler to its end, whatever that is."""
    try:
        kind = running.kind = registry.get(running.assignment.type)
        with _surroundings(running.assignment.context):
            if kind.atomic:
                return _in_transaction(kind, running)
            running.is_at_work = True
            return Outcome(running.completed(kind, _called(kind, running)))
    except BaseException as error:  # SystemExit too is the end of this attempt, and not of the worker
        return settle_failure(running, error)


async def perform_async(running: Running) -> Outcome:
    """Run a coroutine handler to its end, whatever that is."""
    try:
        kind = running.kind = registry.get(running.assignment.type)
        with _surroundings(running.assignment.context):
            running.is_at_work = True
            return Outcome(running.completed(kind, await _awaited(kind, running)))
    except BaseException as error:
        return settle_failure(running, error)


def _called(kind: JobType, running: Running) -> Any:
    """Call a handler; a child that it forked ends here."""
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
    """Run a handler in one transaction with its own completion, which is the last thing the transaction does."""
    backend = backends.current()
    is_within_another = backend.in_atomic()
    with backend.atomic_attempt():
        running.is_at_work = True
        settlement = running.with_report(running.completed(kind, _called(kind, running)))
        followed = backend.settle_in_transaction(settlement)
        if followed:
            backend.on_commit(backend.wake)
    if backend.in_atomic() and not is_within_another:  # what we left was the handler's own, within ours
        raise TransactionManagementError(
            f"The handler of job {running.assignment.id} left a transaction open, so that neither what it wrote nor "
            "its completion was committed. Leave each atomic block that it enters."
        )
    return Outcome(settlement, stored=True, followed=followed)


def settle_failure(running: Running, error: BaseException) -> Outcome:
    """Say what an attempt that did not succeed comes to."""
    asked = running.reason if isinstance(error, (Interrupted, CancelledError)) else None
    if asked and isinstance(error, CancelledError):
        error = _interrupted(error)
    if asked and isinstance(error, Interrupted):
        error.reason = asked  # raised from outside, it cannot know
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
    """Give up a job whose work is done, and whose result and follow-up jobs are more than one message may hold."""
    error = ResultRefused(
        f"The result, the follow-up jobs and the last report of this attempt have {size:,} characters together, which "
        f"is too much. Enqueue further jobs from a follow-up job."
    )
    return settled(running.assignment, _decision(running, error, None), _failure(running, error, Ending.FAILED))


def _interrupted(error: CancelledError) -> Interrupted:
    """Make of what stopped a coroutine, and has no words, what stops any other handler."""
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
    """Give an attempt back whose transaction could not begin: no line of its handler has run, so it is not counted.

    How often its job was given back before, for this or for anything else, is told by the claims that did not count.
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
    attempt = Attempt(running.assignment.attempt, running.assignment.max_retries)
    policy = running.kind.policy if running.kind else _NO_POLICY
    if asked is StopReason.CANCELLED:
        return Stopped("cancelled")
    if asked is StopReason.TIME_LIMIT:
        return decide_cut_short(policy, attempt, "timed out", rng=_dice)
    try:
        decision = decide(policy, attempt, error, rng=_dice)
        return Again(duration(decision.after, "delay")) if isinstance(decision, Again) else decision
    except Exception as mistake:  # the policy's own function failed: the job is not to pay for that
        mistake.add_note(f"raised by the retry function of {running.assignment.type}; the default delay is used")
        if error.__cause__ is None:
            error.__cause__ = mistake
        return decide(replace(policy, delay=Exponential()), attempt, error, rng=_dice)


def _surroundings(carried: str | None) -> AbstractContextManager[None]:
    return set_down(carried) if carried else _USUAL
