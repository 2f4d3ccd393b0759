"""The results of tasks, made from jobs."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from traceback import format_exception
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.utils import timezone

from jobqueue.clock import SYSTEM
from jobqueue.contrib.django_tasks.facts import TaskFacts
from jobqueue.contrib.django_tasks.job_types.arguments import TaskSignature
from jobqueue.contrib.django_tasks.tasks_api import (
    AnyTask,
    AnyTaskResult,
    TaskError,
    TaskResult,
    TaskResultStatus,
    task_backends,
)
from jobqueue.errors import JobFailed
from jobqueue.handlers.registry import JobType
from jobqueue.ids import moment_of
from jobqueue.records import Assignment, Claim, Draft, Ending, JobRecord, PastAttempt
from jobqueue.states import JobStatus

if TYPE_CHECKING:
    from jobqueue.contrib.django_tasks.job_types.task_types import TaskType

STATUSES = {
    JobStatus.QUEUED: TaskResultStatus.READY,
    JobStatus.IN_PROGRESS: TaskResultStatus.RUNNING,
    JobStatus.COMPLETED: TaskResultStatus.SUCCESSFUL,
    JobStatus.FAILED: TaskResultStatus.FAILED,
    JobStatus.DEAD_LETTER: TaskResultStatus.FAILED,
}
#: The worker id of an attempt whose worker isn't known, for example of a job that another program completed.
NOT_RECORDED = "(not recorded)"
#: The longest list of worker ids. Another program may have written any number of attempts.
_MOST_ATTEMPTS = 10_000
#: The endings of attempts that don't count.
_UNCOUNTED = (Ending.RELEASED, Ending.SNOOZED)
_ERROR = f"{JobFailed.__module__}.{JobFailed.__qualname__}"
_OF_A_JOB = ("expires_at", "unique_key", "idempotency_key", "tenant", "workspace")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobError(TaskError):  # type: ignore[misc, unused-ignore]
    """The error of an attempt. Its class is looked up among the loaded modules, because a row must not import any."""

    @property
    def exception_class(self) -> type[BaseException]:
        module, _, name = self.exception_class_path.rpartition(".")
        if module not in sys.modules:
            raise ImportError(f"The module of {self.exception_class_path!r} is not loaded, and no row may import it.")
        found = getattr(sys.modules[module], name, None)
        if not (isinstance(found, type) and issubclass(found, BaseException)):
            raise ValueError(f"{self.exception_class_path!r} does not reference a valid exception.")
        return found


def alias_of(task: AnyTask, facts: TaskFacts) -> str:
    """Return the alias in ``TASKS`` that enqueued a task, or the task's own if the settings no longer have that one."""
    return facts.alias if facts.alias in task_backends.settings else task.backend


def enqueued(
    task: AnyTask,
    draft: Draft,
    alias: str,
    arguments: tuple[list[Any], dict[str, Any]],
) -> AnyTaskResult:
    """Return the result of a task that was just stored."""
    return TaskResult(
        task=task,
        id=draft.id,
        status=TaskResultStatus.READY,
        enqueued_at=_shown(moment_of(draft.id)),
        started_at=None,
        finished_at=None,
        last_attempted_at=None,
        args=arguments[0],
        kwargs=arguments[1],
        backend=alias,
        errors=[],
        worker_ids=[],
    )


def running(
    kind: TaskType,
    claim: Claim | Assignment,
    facts: TaskFacts,
    arguments: tuple[list[Any], dict[str, Any]],
    former: JobRecord | None,
) -> AnyTaskResult:
    """Return the result of a task that begins to run. ``former`` is its job, if it had earlier attempts."""
    now, alias = local(SYSTEM.now()), alias_of(kind.task, facts)
    history = former.history if former else ()
    return TaskResult(
        task=_task_of(kind.task, {**_own(kind.task, facts, alias), "queue_name": claim.queue}),
        id=claim.id,
        status=TaskResultStatus.RUNNING,
        enqueued_at=_shown(moment_of(claim.id), former.created_at if former else None),
        started_at=_shown(_first_start(_before(history, claim.attempt))) or now,
        finished_at=None,
        last_attempted_at=now,
        args=arguments[0],
        kwargs=arguments[1],
        backend=alias,
        errors=_errors(history),
        worker_ids=_workers(history, claim.attempt, claim.owner),
    )


def recorded(kind: JobType, task: AnyTask, record: JobRecord, facts: TaskFacts) -> AnyTaskResult:
    """Return the result of a task from its stored job."""
    (args, kwargs), alias = _arguments(kind, record, facts), alias_of(task, facts)
    own = {**_own(task, facts, alias), "queue_name": record.queue}
    own |= {name: value for name in _OF_A_JOB if (value := getattr(record, name)) is not None}
    status, has_ended = STATUSES[record.status], record.status in (JobStatus.FAILED, JobStatus.DEAD_LETTER)
    errors, earlier = _errors(record.history), _first_start(_before(record.history, record.attempts))
    if has_ended and not errors:
        errors = [JobError(exception_class_path=_ERROR, traceback=record.error or record.end_reason or "")]
    made = TaskResult(
        task=_task_of(task, own),
        id=record.id,
        status=status,
        enqueued_at=_shown(moment_of(record.id), record.created_at),
        started_at=_shown(earlier, record.started_at, _last_start(record.history)),
        finished_at=_shown(record.completed_at),
        last_attempted_at=_shown(record.started_at, _last_start(record.history)),
        args=args,
        kwargs=kwargs,
        backend=alias,
        errors=errors,
        worker_ids=_workers(record.history, record.attempts, record.lease_owner or record.completed_by),
    )
    object.__setattr__(made, "_return_value", record.result if record.status is JobStatus.COMPLETED else None)
    return made


def error_of(error: BaseException) -> JobError:
    """Return the error of the running attempt."""
    kind = type(error)
    return JobError(
        exception_class_path=f"{kind.__module__}.{kind.__qualname__}", traceback="".join(format_exception(error))
    )


def local(moment: datetime) -> datetime:
    """Return a moment as Django's own ``timezone.now()`` would: naive if ``USE_TZ`` is off."""
    return moment if settings.USE_TZ else timezone.make_naive(moment)


def _shown(*moments: datetime | None) -> datetime | None:
    """Return the first known moment."""
    return next((local(one) for one in moments if one is not None), None)


def _arguments(kind: JobType, record: JobRecord, facts: TaskFacts) -> tuple[list[Any], dict[str, Any]]:
    if isinstance(kind.signature, TaskSignature):
        return kind.signature.call_of(record.payload, facts.positional)
    return [], record.payload if isinstance(record.payload, dict) else {}


def _own(task: AnyTask, facts: TaskFacts, alias: str) -> dict[str, Any]:
    """Return what a job's own facts change in its task."""
    own: dict[str, Any] = {"backend": alias, "run_after": facts.run_after}
    return {**own, "priority": facts.priority if facts.alias else task.priority}


def _task_of(task: AnyTask, own: dict[str, Any]) -> AnyTask:
    """Return a task with other values, unvalidated: an operator may have moved the job to any queue."""
    if all(getattr(task, name, None) == value for name, value in own.items()):
        return task
    made = object.__new__(type(task))
    for one in fields(task):
        object.__setattr__(made, one.name, own.get(one.name, getattr(task, one.name)))
    return made


def _counted(history: Iterable[PastAttempt]) -> list[PastAttempt]:
    return [one for one in history if one.attempt > 0 and one.ending not in _UNCOUNTED]


def _errors(history: Iterable[PastAttempt]) -> list[TaskError]:
    return [
        JobError(exception_class_path=_path(one.error_class), traceback=one.traceback or one.message)
        for one in _counted(history)
    ]


def _path(error_class: str) -> str:
    """Return the path of an error's class. The history leaves out the module of built-in classes."""
    return (error_class if "." in error_class else f"builtins.{error_class}") if error_class else _ERROR


def _workers(history: Iterable[PastAttempt], attempts: int, owner: str | None) -> list[str]:
    """Return a worker id for each attempt, because Django counts attempts by them."""
    known = {one.attempt: one.owner for one in _counted(history)}
    count = min(attempts, _MOST_ATTEMPTS)
    if owner:
        known[count] = owner
    return [known.get(number, NOT_RECORDED) for number in range(1, count + 1)]


def _before(history: Iterable[PastAttempt], attempt: int) -> list[PastAttempt]:
    """Return the attempts before one whose start the job still has. It loses that when it goes back to its queue."""
    return [one for one in history if one.attempt < attempt]


def _first_start(history: Iterable[PastAttempt]) -> datetime | None:
    return min((_start(one) for one in _counted(history)), default=None)


def _last_start(history: Iterable[PastAttempt]) -> datetime | None:
    return max((_start(one) for one in _counted(history)), default=None)


def _start(one: PastAttempt) -> datetime:
    try:
        return one.ended_at - (one.duration or timedelta(0))
    except OverflowError:  # another program may have written any duration
        return one.ended_at
