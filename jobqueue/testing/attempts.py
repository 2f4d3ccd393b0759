"""Attempts that run in the test's process, on its connections, and what is known of them afterwards."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from asgiref.sync import async_to_sync
from django.db import DatabaseError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from jobqueue.errors import JobQueueError, LeaseLost
from jobqueue.handlers.registry import registry
from jobqueue.records import Assignment, Draft, Followed, Settlement
from jobqueue.states import MOVES, JobStatus, Move
from jobqueue.worker.executor.attempt import Outcome, Running, run, run_async, settle_failure


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptReport:
    """What one attempt came to.

    ``status`` is the job's status after it. ``error`` is what the handler raised, ``delay`` how long the job waits for
    its next attempt, ``reason`` why it ended. ``progress`` has all progress reports, ``followed`` the follow-up jobs.
    """

    job_id: str
    job_type: str
    attempt: int
    move: Move
    error: BaseException | None = field(default=None, compare=False)
    value: Any = None
    delay: timedelta | None = None
    reason: str = ""
    progress: tuple[dict[str, Any], ...] = ()
    followed: tuple[Draft, ...] = ()

    @property
    def status(self) -> JobStatus:
        """Return the status that the job has after this attempt."""
        return MOVES[self.move].target

    @property
    def result(self) -> Any:
        """Return the handler's result, as the job stores it. Raise the handler's error if it did not complete."""
        if self.error is not None:
            raise self.error
        return self.value


class WatchedRun(Running):
    """A running attempt that keeps its progress reports and its error."""

    __slots__ = ("error", "reports")

    def __init__(self, assignment: Assignment) -> None:
        self.reports: list[dict[str, Any]] = []
        self.error: BaseException | None = None
        super().__init__(assignment, self._keep)

    def _keep(self, _assignment: Assignment, text: str) -> None:
        self.reports.append(json.loads(text))

    def outcome(self) -> Outcome:
        """Run the handler to its end."""
        try:
            with _sheltered(self.assignment):
                return self.run()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self.error = error
            return settle_failure(self, error)

    def run(self) -> Outcome:
        """Run the handler as a worker does, or raise its error."""
        if registry.is_async(self.assignment.type):
            return async_to_sync(run_async)(self)
        return run(self)

    def report_of(self, settlement: Settlement, followed: tuple[Followed, ...] = ()) -> AttemptReport:
        """Return what the attempt came to."""
        failure = settlement.failure
        stored = [one.draft for one in followed if one.is_news and not one.refusal]
        return AttemptReport(
            job_id=settlement.id,
            job_type=self.assignment.type,
            attempt=self.assignment.attempt,
            move=settlement.move,
            error=self.error,
            value=None if settlement.result is None else json.loads(settlement.result),
            delay=settlement.delay,
            reason=settlement.end_reason or (failure.message if failure else ""),
            progress=tuple(self.reports),
            followed=tuple(stored) if followed else settlement.children,
        )


def settlement_of(attempt: WatchedRun, outcome: Outcome) -> Settlement:
    """Return the settlement of an outcome. Raise LeaseLost if the handler let its claim go."""
    if outcome.settlement is None:
        raise attempt.error or LeaseLost(*attempt.assignment.claim)
    return attempt.with_report(outcome.settlement)


@contextmanager
def _sheltered(assignment: Assignment) -> Iterator[None]:
    """Keep a handler's database error from breaking the test's own transaction, as it would on Postgres."""
    places = [_Place(one) for one in connections.all(initialized_only=True) if one.in_atomic_block]
    try:
        yield
    except BaseException:
        for place in places:
            place.leave()
        raise
    broken = [place.alias for place in places if place.leave()]
    if broken:
        raise JobQueueError(
            f"The handler of job {assignment.id} ({assignment.type}) has caught a database error of {broken[0]!r} "
            "outside of atomic(), which breaks the transaction of this test. Put the statement into an atomic() "
            "block, or let the test commit: use TransactionTestCase, or django_db(transaction=True)."
        )


class _Place:
    """A savepoint in a transaction of the test."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        self.alias = connection.alias
        self._connection = connection
        self._callbacks = len(connection.run_on_commit)
        self._execute("SAVEPOINT jobqueue_attempt")

    def leave(self) -> bool:
        """Release the savepoint. If the transaction is broken, roll back to it, and return true."""
        if not self._connection.in_atomic_block or self._connection.closed_in_transaction:
            return False  # the handler closed it, and the rows of the test are gone with it
        broken = self._is_broken()
        if broken:
            self._connection.needs_rollback = False
            self._execute("ROLLBACK TO SAVEPOINT jobqueue_attempt")
            del self._connection.run_on_commit[self._callbacks :]
        self._execute("RELEASE SAVEPOINT jobqueue_attempt")
        return broken

    def _is_broken(self) -> bool:
        if self._connection.needs_rollback:
            return True
        try:
            self._execute("SELECT 1")
        except DatabaseError:
            return True
        return False

    def _execute(self, statement: str) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(statement)
