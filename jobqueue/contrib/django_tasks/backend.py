"""The backend that ``TASKS`` names: it stores tasks as jobs, and reads jobs as results."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import cached_property, partial
from typing import Any

from django.core.checks import CheckMessage

from jobqueue import backends, queues
from jobqueue.api.admission import admit, without_blocking
from jobqueue.clock import SYSTEM
from jobqueue.contrib.django_tasks import checks, priorities, results
from jobqueue.contrib.django_tasks.facts import TaskFacts
from jobqueue.contrib.django_tasks.job_types import task_types
from jobqueue.contrib.django_tasks.job_types.arguments import TaskSignature
from jobqueue.contrib.django_tasks.options import AliasOptions
from jobqueue.contrib.django_tasks.task import JobQueueTask
from jobqueue.contrib.django_tasks.tasks_api import (
    AnyTask,
    AnyTaskResult,
    BaseTaskBackend,
    InvalidTask,
    TaskResultDoesNotExist,
    normalize_json,
    task_enqueued,
)
from jobqueue.errors import InvalidOption, QueueFull
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

    def validate_task(self, task: AnyTask) -> None:
        """Raise InvalidTask for a task that can't be a job, and make its function known to this process."""
        if _at(task) is not task:
            return  # the same task with a moment was validated when it was made
        super().validate_task(task)
        try:
            name("queue_name", task.queue_name)
        except InvalidOption as error:
            raise InvalidTask(str(error)) from error
        self._priority(task)
        task_types.register(task, self.job_options.of_task(task.module_path))

    def enqueue(self, task: AnyTask, args: Any, kwargs: Any) -> AnyTaskResult:  # type: ignore[override, unused-ignore]
        """Store a task in the caller's transaction. ``task_enqueued`` is sent after its commit.

        Raises InvalidTask for wrong options, TypeError for arguments that are not JSON or don't fit the function,
        PayloadRefused for arguments that JSON would change, and QueueFull, also if the queue sheds: a task that wasn't
        stored has no result. If a key already has a job, that job's result is returned.
        """
        task = _at(task)
        self.validate_task(task)
        kind = task_types.type_of(task.func)
        arguments: tuple[Any, Any] = (normalize_json(args), normalize_json(kwargs))
        draft = self._draft(kind, task, *arguments)
        receipt = admit([draft])[0]
        if receipt.is_shed:
            capacity = queues.options_of(draft.queue).capacity or 0
            raise QueueFull(draft.queue, 1, capacity, capacity, "it sheds tasks that are less urgent than usual")
        if not receipt.created:
            return self._existing(receipt.id)
        result = results.enqueued(task, draft, self.alias, arguments)
        backends.current().on_commit(partial(task_enqueued.send_robust, sender=type(self), task_result=result))
        return result

    async def aenqueue(self, task: AnyTask, args: Any, kwargs: Any) -> AnyTaskResult:  # type: ignore[override, unused-ignore]
        """Store a task from async code. While its queue has no room, wait without a thread."""
        return await without_blocking(partial(self.enqueue, task, args, kwargs))

    def get_result(self, result_id: object) -> AnyTaskResult:
        """Return a task's result. Raise TaskResultDoesNotExist if this alias has no task with the id."""
        if not isinstance(result_id, str) or not result_id.isprintable() or len(result_id) > _LONGEST_ID:
            raise TaskResultDoesNotExist(result_id)
        record = backends.look_up(result_id)
        if record is None:
            raise TaskResultDoesNotExist(result_id)
        result = self._result_of(record)
        if result.backend != self.alias:
            raise TaskResultDoesNotExist(
                f"Job {record.id} is a task of the alias {result.backend!r}, not {self.alias!r}."
            )
        return result

    def check(self, **_: Any) -> list[CheckMessage]:
        """Check the alias's options, the installed apps, and that workers will find each task."""
        return [*checks.check_alias(self.alias, self.options)]

    def _existing(self, job_id: str) -> AnyTaskResult:
        """Return the result of the job that has a key, which another alias may have enqueued."""
        record = backends.look_up(job_id)
        if record is None:
            raise TaskResultDoesNotExist(job_id)
        return self._result_of(record)

    def _result_of(self, record: JobRecord) -> AnyTaskResult:
        kind, facts = task_types.task_type(record.type), TaskFacts.of_context(record.context)
        task = kind.task if kind else self._adopted(record.type)
        if task is None:
            raise TaskResultDoesNotExist(f"Job {record.id} is of type {record.type!r}, which is no task here.")
        return results.recorded(registry.get(record.type), task, record, facts)

    def _adopted(self, job_type: str) -> AnyTask | None:
        """Return the task that was made of a handler, if one was."""
        kind = registry.get(job_type) if job_type in registry.names else None
        is_task = kind is not None and task_types.is_known(kind.function)
        return JobQueueTask.of_function(kind.function, self.alias, kind.options.queue) if kind and is_task else None

    def _priority(self, task: AnyTask) -> int:
        levels = self.job_options.levels
        if levels is None:
            return priorities.band(int(task.priority))
        if task.priority not in levels:
            raise InvalidTask(
                f"The priority {task.priority} is not in OPTIONS['priorities'] of TASKS[{self.alias!r}]: "
                f"{', '.join(map(str, sorted(levels)))}."
            )
        return levels[task.priority]

    def _draft(self, kind: JobType, task: AnyTask, args: list[Any], kwargs: dict[str, Any]) -> Draft:
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

    def _options(self, kind: JobType, task: AnyTask) -> Options:
        given = {one: value for one in _SAME if (value := getattr(task, one, None)) is not None}
        settings = self.job_options.of_task(kind.name) if isinstance(kind, task_types.TaskType) else {}
        if "timeout" in settings:
            given.setdefault("timeout", settings["timeout"])
        attempts = getattr(task, "max_attempts", None)
        if attempts is not None or "max_attempts" in settings:
            given["max_retries"] = settings["max_attempts"] if attempts is None else attempts
        if task.run_after is not None:
            given |= {"scheduled_at": task.run_after, "delay": 0}
        return kind.options.but(queue=task.queue_name, priority=self._priority(task), **given)


def _at(task: AnyTask) -> AnyTask:
    """Return a task whose ``run_after`` is a moment, also if a duration was given."""
    given: object = task.run_after
    if not isinstance(given, timedelta):
        return task
    try:
        return replace(task, run_after=results.local(SYSTEM.now()) + given)
    except OverflowError as error:
        raise InvalidTask(f"run_after is too far away: {given}.") from error
