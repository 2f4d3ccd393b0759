"""The backend that ``TASKS`` names: it stores tasks as jobs, and reads jobs as results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from functools import cached_property, partial
from typing import Any

from django.core.checks import CheckMessage

from jobqueue import backends
from jobqueue.api.admission import admit
from jobqueue.clock import SYSTEM
from jobqueue.contrib.django_tasks import checks, priorities, results, task_types
from jobqueue.contrib.django_tasks.arguments import TaskSignature
from jobqueue.contrib.django_tasks.facts import TaskFacts
from jobqueue.contrib.django_tasks.options import AliasOptions
from jobqueue.contrib.django_tasks.task import JobQueueTask
from jobqueue.contrib.django_tasks.tasks_api import (
    BaseTaskBackend,
    InvalidTask,
    Task,
    TaskResult,
    TaskResultDoesNotExist,
    normalize_json,
    task_enqueued,
)
from jobqueue.errors import InvalidOption
from jobqueue.handlers.options import Options, name
from jobqueue.handlers.registry import JobType, registry
from jobqueue.records import Draft, JobRecord

_LONGEST_ID = 64
#: The fields of a task that are options of its jobs under the same names.
_SAME = ("timeout", "expires_at", "unique_key", "idempotency_key", "tenant", "workspace")


class JobQueueBackend(BaseTaskBackend):
    """Tasks as jobs. Many may exist, because Django makes one for each alias and thread."""

    task_class = JobQueueTask
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    @cached_property
    def job_options(self) -> AliasOptions:
        """The validated ``OPTIONS`` of the alias."""
        try:
            return AliasOptions.of(self.options)
        except ValueError as error:
            raise InvalidTask(f"TASKS[{self.alias!r}] is wrong: {error}") from error

    def validate_task(self, task: Task) -> None:  # type: ignore[type-arg, unused-ignore]
        """Raise InvalidTask for a task that can't be a job, and make its function known to this process."""
        if isinstance(task.run_after, timedelta):
            _at(task)  # the same task with a moment, which is validated when it is made
            return
        super().validate_task(task)
        try:
            name("queue_name", task.queue_name)
        except InvalidOption as error:
            raise InvalidTask(str(error)) from error
        self._priority(task)
        task_types.register(task, self.job_options.of_task(task.module_path))

    def enqueue(self, task: Task, args: Any, kwargs: Any) -> TaskResult:  # type: ignore[type-arg, unused-ignore]
        """Store a task in the caller's transaction. ``task_enqueued`` is sent after its commit.

        Raises InvalidTask for wrong options, TypeError for arguments that are not JSON or don't fit the function, and
        PayloadRefused for arguments that JSON would change. If a key already has a job, that job's result is returned.
        """
        task = _at(task)
        self.validate_task(task)
        kind, arguments = task_types.type_of(task.func), (normalize_json(args), normalize_json(kwargs))
        draft = self._draft(kind, task, *arguments)
        receipt = admit([draft])[0]
        if not receipt.created:
            return self.get_result(receipt.id)
        result = results.enqueued(task, draft, self.alias, arguments)
        backends.current().on_commit(partial(task_enqueued.send_robust, sender=type(self), task_result=result))
        return result

    def get_result(self, result_id: str) -> TaskResult:  # type: ignore[type-arg, unused-ignore]
        """Return a task's result. Raise TaskResultDoesNotExist if this alias has no task with the id."""
        if not isinstance(result_id, str) or not result_id.isprintable() or len(result_id) > _LONGEST_ID:
            raise TaskResultDoesNotExist(result_id)
        record = backends.look_up(result_id)
        if record is None:
            raise TaskResultDoesNotExist(result_id)
        return self._result_of(record)

    def check(self, **_: Any) -> Iterator[CheckMessage]:
        """Check the alias's options, the installed apps, and that workers will find each task."""
        return checks.check_alias(self.alias, self.options)

    def _result_of(self, record: JobRecord) -> TaskResult:  # type: ignore[type-arg, unused-ignore]
        kind, facts = task_types.task_type(record.type), TaskFacts.of_context(record.context)
        task = kind.task if kind else self._adopted(record.type)
        if task is None:
            raise TaskResultDoesNotExist(f"Job {record.id} is of type {record.type!r}, which is no task here.")
        alias = facts.alias or (kind.task.backend if kind else self.alias)
        if alias != self.alias:
            raise TaskResultDoesNotExist(f"Job {record.id} is a task of the alias {alias!r}, not {self.alias!r}.")
        return results.recorded(registry.get(record.type), task, record, facts, alias)

    def _adopted(self, job_type: str) -> Task | None:  # type: ignore[type-arg, unused-ignore]
        """Return the task that was made of a handler, if one was."""
        kind = registry.get(job_type) if job_type in registry.names else None
        is_task = kind is not None and task_types.is_known(kind.function)
        return self.task_class(func=kind.function, backend=self.alias) if kind and is_task else None

    def _priority(self, task: Task) -> int:  # type: ignore[type-arg, unused-ignore]
        levels = self.job_options.levels
        if levels is None:
            return priorities.band(int(task.priority))
        if task.priority not in levels:
            raise InvalidTask(
                f"The priority {task.priority} is not in OPTIONS['priorities'] of TASKS[{self.alias!r}]: "
                f"{', '.join(map(str, sorted(levels)))}."
            )
        return levels[task.priority]

    def _draft(self, kind: JobType, task: Task, args: list[Any], kwargs: dict[str, Any]) -> Draft:  # type: ignore[type-arg, unused-ignore]
        payload = kind.signature.payload_of(tuple(args), kwargs)
        try:
            draft = kind.decide(self._options(kind, task), payload)
        except InvalidOption as error:
            raise InvalidTask(str(error)) from error
        facts = TaskFacts(
            alias=self.alias,
            positional=len(args) if isinstance(kind.signature, TaskSignature) else 0,
            priority=int(task.priority),
            run_after=task.run_after,
        )
        return replace(draft, context=facts.within(draft.context))

    def _options(self, kind: JobType, task: Task) -> Options:  # type: ignore[type-arg, unused-ignore]
        given = {one: value for one in _SAME if (value := getattr(task, one, None)) is not None}
        if (attempts := getattr(task, "max_attempts", None)) is not None:
            given["max_retries"] = attempts
        if task.run_after is not None:
            given |= {"scheduled_at": task.run_after, "delay": 0}
        return kind.options.but(queue=task.queue_name, priority=self._priority(task), **given)


def _at(task: Task) -> Task:  # type: ignore[type-arg, unused-ignore]
    """Return a task whose ``run_after`` is a moment, also if a duration was given."""
    if isinstance(task.run_after, timedelta):
        return replace(task, run_after=results.local(SYSTEM.now()) + task.run_after)
    return task
