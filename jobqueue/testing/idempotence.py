"""The proof that a handler may run twice, and may be killed at any statement before that."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from django.db import connections, transaction
from pydantic import BaseModel

from jobqueue import backends
from jobqueue.api.functions import find
from jobqueue.api.handler import Handler
from jobqueue.records import Assignment, Draft
from jobqueue.testing.database import database_of
from jobqueue.testing.difference import difference
from jobqueue.testing.single_attempt import RunWithoutJob, assignment_of
from jobqueue.worker.executor.attempt import Outcome

#: How SQL begins that belongs to a transaction and not to a handler.
_OF_TRANSACTIONS = ("SAVEPOINT", "RELEASE", "ROLLBACK", "BEGIN", "COMMIT")
#: A handler with more statements is killed at this many of them, evenly spread.
MOST_KILLS = 200


class Killed(BaseException):
    """The attempt ends here, as if its process was killed."""


class Kills:
    """Counts the statements and progress reports of an attempt, and ends the attempt at one of them.

    From there on the attempt writes nothing: a killed process doesn't clean up either.
    """

    def __init__(self, at: int | None = None) -> None:
        self.at = at
        self.count = 0
        self.place = ""

    def __call__(self, execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: Any) -> Any:
        text = str(sql)
        if not text.lstrip().upper().startswith(_OF_TRANSACTIONS):
            self.pass_by(text)
        return execute(sql, params, many, context)

    def pass_by(self, place: str) -> None:
        """Count a place, or raise Killed."""
        self.count += 1
        if self.at is not None and self.count >= self.at:
            self.place = self.place or place
            raise Killed


class KillableRun(RunWithoutJob):
    """An attempt that may be killed at each of its statements and progress reports."""

    __slots__ = ("kills",)

    def __init__(self, assignment: Assignment) -> None:
        self.kills = Kills()
        super().__init__(assignment)

    def run(self) -> Outcome:
        with ExitStack() as stack:
            for connection in connections.all(initialized_only=True):
                stack.enter_context(connection.execute_wrapper(self.kills))
            return super().run()

    def _keep(self, assignment: Assignment, text: str) -> None:
        self.kills.pass_by(f"ctx.progress({text})")
        super()._keep(assignment, text)


def assert_idempotent(
    handler: str | Handler[..., Any, ...],
    payload: BaseModel | dict[str, Any] | None = None,
    *,
    observe: Callable[[], object],
    using: str | None = None,
) -> None:
    """Assert that a handler does the same whether it runs once, twice, or after an attempt that was killed.

    ``observe`` returns the effects of the handler, such as rows or the content of a file. They are compared after one
    attempt, after a second one, and after each pair of a killed and a complete attempt. Attempts are killed before each
    statement and each progress report in turn. An atomic handler doesn't run again after a complete attempt, because it
    commits with its completion; it is only killed.

    Changes of the database (``using``, by default all that the test may use) are rolled back after each trial. What a
    handler does elsewhere stays.
    """
    target = find(handler)
    draft = target.draft() if payload is None else target.job_type.decide(target.options, payload)
    trial = _Trial(draft, observe, using)
    once, points = trial.first()
    if not target.job_type.atomic:
        trial.compare(once, "after it ran twice", None)
    step = -(-points // MOST_KILLS) or 1
    for at in range(1, points + 1, step):
        trial.compare(once, "after an attempt was killed", at)


class _Trial:
    """The attempts of one job, each in a transaction that is rolled back."""

    def __init__(self, draft: Draft, observe: Callable[[], object], using: str | None) -> None:
        self._draft = draft
        self._observe = observe
        self._using = using

    def first(self) -> tuple[object, int]:
        """Return what one attempt brings about, and how many places it passes at which it can be killed."""
        with _rolled_back(self._using):
            kills = self._run("in its first attempt")
            return self._observe(), kills.count

    def compare(self, once: object, when: str, at: int | None) -> None:
        """Run an attempt, killed or complete, and a complete one. Raise AssertionError if they bring about more."""
        with _rolled_back(self._using):
            kills = self._run(when, at)
            where = f" at place {at}, {kills.place[:200]!r}," if at is not None else ""
            told = f"{when}{where} and then once more" if at is not None else when
            self._run(told)
            observed = self._observe()
        if observed != once:
            raise AssertionError(
                f"The handler {self._draft.type!r} is not safe to run twice. What is observed {told} differs from what "
                f"one attempt brings about (- once, + now):\n{difference(once, observed)}"
            )

    def _run(self, when: str, at: int | None = None) -> Kills:
        running = KillableRun(assignment_of(self._draft))
        running.kills.at = at
        running.outcome()
        if at is None and running.error is not None:
            raise AssertionError(
                f"The handler {self._draft.type!r} failed {when}: {type(running.error).__name__}: {running.error}"
            ) from running.error
        return running.kills


@contextmanager
def _rolled_back(using: str | None) -> Iterator[None]:
    """Roll back what happens in the databases, in blocks in which a handler may have durable ones."""
    aliases = _databases() if using is None else [using]
    with ExitStack() as stack:
        for alias in aliases:
            block = transaction.atomic(using=alias)
            block._from_testcase = True  # type: ignore[attr-defined]  # as Django's TestCase does
            stack.enter_context(block)
        yield
        for alias in aliases:
            transaction.set_rollback(True, using=alias)


def _databases() -> list[str]:
    """Return the databases that this thread uses, and that of the queue."""
    queue = {database_of(backends.current())}
    used = {one.alias for one in connections.all(initialized_only=True) if one.connection is not None}
    return sorted(filter(None, used | queue))
