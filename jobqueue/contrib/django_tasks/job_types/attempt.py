"""The attempt of a task: its context, the call of its function, and Django's signals around the call."""

from __future__ import annotations

from asyncio import CancelledError
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async
from django.db import DatabaseError
from django.dispatch import Signal

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
    from jobqueue.contrib.django_tasks.job_types.task_types import TaskType

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
        self._sender = type(task_backends[results.alias_of(kind.task, self._facts)])

    def run(self) -> Any:
        """Call a function, and return its result as JSON data."""
        result = self._result(self._former())
        self._send(task_started, result)
        try:
            value = self._checked(self._kind.function(*self._arguments(result), **self._kwargs))
        except BaseException as error:
            if self._has_failed(result, error):
                self._send(task_finished, result)  # within the except, so that receivers find the exception
            raise
        self._send(task_finished, self._succeeded(result, value))
        return value

    async def run_async(self) -> Any:
        """Await a coroutine function, and return its result as JSON data."""
        result = self._result(await sync_to_async(self._former)() if self._claim.attempt > 1 else None)
        await self._asend(task_started, result)
        try:
            value = self._checked(await self._kind.function(*self._arguments(result), **self._kwargs))
        except BaseException as error:
            if self._has_failed(result, error):
                await self._asend(task_finished, result)
            raise
        await self._asend(task_finished, self._succeeded(result, value))
        return value

    def _send(self, signal: Signal, result: AnyTaskResult) -> None:
        signal.send_robust(sender=self._sender, task_result=result)

    async def _asend(self, signal: Signal, result: AnyTaskResult) -> None:
        """Send a signal from a thread, where receivers may use the database. Their context variables come back."""
        await sync_to_async(self._send)(signal, result)

    def _former(self) -> JobRecord | None:
        """Read the job with its earlier attempts, if it had any. Without them the task runs all the same."""
        if self._claim.attempt <= 1:
            return None
        try:
            return backends.current().jobs.get(self._claim.id)
        except DatabaseError:
            return None

    def _result(self, former: JobRecord | None) -> AnyTaskResult:
        return results.running(self._kind, self._claim, self._facts, (self._args, self._kwargs), former)

    def _arguments(self, result: AnyTaskResult) -> list[Any]:
        if self._kind.task.takes_context:
            return [TaskContext(task_result=result), *self._args]
        return self._args

    def _checked(self, value: Any) -> Any:
        """Return a result as JSON data. Raise TypeError or ResultRefused if it is none that can be stored."""
        normal = normalize_json(value)
        self._kind.result.dump(normal)
        return normal

    def _succeeded(self, result: AnyTaskResult, value: Any) -> AnyTaskResult:
        object.__setattr__(result, "_return_value", value)
        return self._ended(result, TaskResultStatus.SUCCESSFUL)

    def _has_failed(self, result: AnyTaskResult, error: BaseException) -> bool:
        """Note an error in the result if the task won't run again. Return whether that is so."""
        if not self._is_final(error):
            return False
        result.errors.append(results.error_of(error))
        self._ended(result, TaskResultStatus.FAILED)
        return True

    def _ended(self, result: AnyTaskResult, status: TaskResultStatus) -> AnyTaskResult:
        object.__setattr__(result, "status", status)
        object.__setattr__(result, "finished_at", results.local(SYSTEM.now()))
        return result

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
