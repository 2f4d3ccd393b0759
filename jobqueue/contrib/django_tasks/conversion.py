"""Handlers as tasks, and tasks as handlers, for libraries that expect one or the other."""

from __future__ import annotations

from typing import Any

from jobqueue.api.handler import Handler, handler_of
from jobqueue.contrib.django_tasks.job_types import task_types
from jobqueue.contrib.django_tasks.task import JobQueueTask
from jobqueue.contrib.django_tasks.tasks_api import AnyTask, InvalidTask
from jobqueue.policy.nearest import did_you_mean


def as_task(handler: Handler[..., Any, ...], *, backend: str = "default") -> AnyTask:
    """Return a task that enqueues jobs of a handler's type. ``backend`` is an alias of this queue in ``TASKS``.

    A job of the task is the same as one that the handler enqueues: it has the handler's name, retries and payload.
    Django's signals ``task_started`` and ``task_finished`` are not sent for it.
    """
    task_types.adopt(handler.job_type)
    return JobQueueTask.of_function(handler.job_type.function, backend, handler.options.queue)


def as_handler(task: AnyTask) -> Handler[..., Any, ...]:
    """Return a handler that enqueues a task's jobs. Raise InvalidTask if the task isn't known to this process."""
    if not task_types.is_known(task.func):
        known = (kind.name for kind in task_types.registered())
        raise InvalidTask(f"{task.module_path} is no task of this queue. {did_you_mean(task.module_path, known)}")
    return handler_of(task_types.type_of(task.func))
