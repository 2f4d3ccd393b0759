"""The job types of tasks: one for each function, under its path. A row names a path, which is never imported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.apps import apps

from jobqueue.contrib.django_tasks.job_types.arguments import TaskPayload, TaskSignature
from jobqueue.contrib.django_tasks.job_types.attempt import TaskAttempt
from jobqueue.contrib.django_tasks.options import options_of, policy_with
from jobqueue.contrib.django_tasks.task import OF_A_TYPE
from jobqueue.contrib.django_tasks.tasks_api import AnyTask, InvalidTask
from jobqueue.errors import JobQueueError
from jobqueue.handlers.context import Attending
from jobqueue.handlers.job_options import aliases_of, lease_of
from jobqueue.handlers.options import name as check_name
from jobqueue.handlers.registry import JobType, describe, registry
from jobqueue.records import Assignment, Claim

_OF_A_TYPE = ("max_attempts", "timeout", *OF_A_TYPE)

#: The job types by function: those of tasks, and those of handlers that were made tasks.
_types: dict[Callable[..., Any], JobType] = {}
#: The paths that were registered after Django was set up. Other processes need not know them.
late: set[str] = set()


@dataclass(frozen=True, kw_only=True)
class TaskType(JobType):
    """The job type of a task."""

    task: AnyTask
    signature: TaskSignature

    def call(self, claim: Claim | Assignment, attendant: Attending | None = None) -> Any:
        """Call the task's function for a claim. An async task returns a coroutine."""
        payload = self.payload.load(claim.payload, claim.payload_version).model_dump(exclude_unset=True)
        attempt = TaskAttempt(self, claim, payload, attendant)
        return attempt.run_async() if self.is_async else attempt.run()


def type_of(function: Callable[..., Any]) -> JobType:
    """Return the job type of a task's function. It was registered when the task was validated."""
    return _types[function]


def is_known(function: Callable[..., Any]) -> bool:
    """Return whether a function is a task's, or a handler's that was made a task."""
    return function in _types


def task_type(name: str) -> TaskType | None:
    """Return the job type of a task by a stored name, or ``None`` if this process has no such task."""
    found = registry.get(name) if name in registry.names else None
    return found if isinstance(found, TaskType) else None


def registered() -> list[TaskType]:
    """Return all tasks of this process."""
    return [kind for kind in registry if isinstance(kind, TaskType)]


def register(task: AnyTask, settings: Mapping[str, Any]) -> None:
    """Register the job type of a task. Raise InvalidTask, with the reason, if it can't be one."""
    if task.func in _types:
        return
    try:
        made = _made(task, settings)
        registry.add(made)
    except JobQueueError as error:
        raise InvalidTask(f"The task {task.module_path} cannot be a job: {error}") from error
    _types[task.func] = made
    if apps.ready:
        late.add(made.name)


def adopt(kind: JobType) -> None:
    """Let tasks with a handler's function be jobs of the handler's type."""
    _types[kind.function] = kind


def _made(task: AnyTask, settings: Mapping[str, Any]) -> TaskType:
    own = {name: value for name in _OF_A_TYPE if (value := getattr(task, name, None)) not in (None, ())}
    given, path = {**settings, **own}, task.module_path
    aliases = aliases_of(given.get("aliases", ()))
    for one in (path, *aliases):
        check_name("the task's path", one)
    signature = TaskSignature.of_task(task.func, takes_context=task.takes_context)
    lease: timedelta | None = lease_of(given.get("lease"))
    return TaskType(
        name=path,
        function=task.func,
        where=describe(task.func),
        signature=signature,
        payload=TaskPayload(signature.form),
        options=options_of(given).but(queue=task.queue_name),
        policy=policy_with(given.get("backoff")),
        aliases=aliases,
        lease=lease,
        task=task,
    )
