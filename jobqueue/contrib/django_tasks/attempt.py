"""The attempt of a task: its context, the call of its function, and Django's signals around the call."""

from __future__ import annotations

from asyncio import CancelledError
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async
from django.db import DatabaseError

from jobqueue import backends
from jobqueue.clock import SYSTEM
from jobqueue.contrib.django_tasks import results
from jobqueue.contrib.django_tasks.facts import TaskFacts
from jobqueue.contrib.django_tasks.tasks_api import (
    AnyTaskResult,
    TaskContext,
    TaskResultStatus,
    normalize_json,
    task_backends,
    task_finished,
    task_started,
)
from jobqueue.errors import Interrupted, LeaseLost, StopReason
from jobqueue.handlers.context import Attending
from jobqueue.policy.retry import Fixed, decide
from jobqueue.records import Assignment, AttemptCount, Claim, Dead, JobRecord, Stopped

if TYPE_CHECKING:
    from jobqueue.contrib.django_tasks.task_types import TaskType

_NO_WAIT = Fixed(timedelta(0))
_DICE = Random(0)  # noqa: S311 - it decides nothing: whether a wait follows is asked, not how long


class TaskAttempt:
    """One attempt of a task. Receivers of its signals are called in the task's own thread or coroutine."""

    def __init__(
        self, kind: TaskType, claim: Claim | Assignment, payload: dict[str, Any], attendant: Attending | None
    ) -> None:
        self._kind = kind
        self._claim = claim
        self._attendant = attendant
        self._facts = TaskFacts.of_text(claim.context)
        self._args, self._kwargs = kind.signature.call_of(payload, self._facts.positional)

    def run(self) -> Any:
        """Call a function, and return its result as JSON data."""
        result = self._begin(self._former())
        try:
            value = self._checked(self._kind.function(*self._arguments(result), **self._kwargs))
        except BaseException as error:
            self._fail(result, error)
            raise
        return self._succeed(result, value)

    async def run_async(self) -> Any:
        """Await a coroutine function, and return its result as JSON data."""
        result = self._begin(await sync_to_async(self._former)())
        try:
            value = self._checked(await self._kind.function(*self._arguments(result), **self._kwargs))
        except BaseException as error:
            self._fail(result, error)
            raise
        return self._succeed(result, value)

    def _former(self) -> JobRecord | None:
        """Read the job with its earlier attempts, if it had any. Without them the task runs all the same."""
        if self._claim.attempt <= 1:
            return None
        try:
            return backends.current().jobs.get(self._claim.id)
        except DatabaseError:
            return None

    def _begin(self, former: JobRecord | None) -> AnyTaskResult:
        result = results.running(self._kind, self._claim, self._facts, (self._args, self._kwargs), former)
        task_started.send_robust(sender=self._sender(result), task_result=result)
        return result

    def _arguments(self, result: AnyTaskResult) -> list[Any]:
        if self._kind.task.takes_context:
            return [TaskContext(task_result=result), *self._args]
        return self._args

    def _checked(self, value: Any) -> Any:
        """Return a result as JSON data. Raise TypeError or ResultRefused if it is none that can be stored."""
        normal = normalize_json(value)
        self._kind.result.dump(normal)
        return normal

    def _succeed(self, result: AnyTaskResult, value: Any) -> Any:
        object.__setattr__(result, "_return_value", value)
        self._finish(result, TaskResultStatus.SUCCESSFUL)
        return value

    def _fail(self, result: AnyTaskResult, error: BaseException) -> None:
        """Send ``task_finished`` within the ``except``, so that receivers find the exception, unless it runs again."""
        if self._is_final(error):
            result.errors.append(results.error_of(error))
            self._finish(result, TaskResultStatus.FAILED)

    def _finish(self, result: AnyTaskResult, status: TaskResultStatus) -> None:
        object.__setattr__(result, "status", status)
        object.__setattr__(result, "finished_at", results.local(SYSTEM.now()))
        task_finished.send_robust(sender=self._sender(result), task_result=result)

    def _is_final(self, error: BaseException) -> bool:
        """Return whether the task won't run again after an error, by the rules that settle the job."""
        count = AttemptCount(self._claim.attempt, self._claim.max_retries)
        asked = self._attendant.stop_reason() if self._attendant else None
        if isinstance(error, (Interrupted, CancelledError)) and asked is not None:
            return asked is StopReason.CANCELLED or (asked is StopReason.TIME_LIMIT and not count.left)
        if isinstance(error, LeaseLost):
            return False
        decision = decide(replace(self._kind.policy, delay=_NO_WAIT), count, error, rng=_DICE)
        return isinstance(decision, (Dead, Stopped))

    def _sender(self, result: AnyTaskResult) -> type:
        return type(task_backends[result.backend])
