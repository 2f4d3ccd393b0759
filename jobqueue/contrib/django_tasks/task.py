"""Tasks with the options of this queue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from jobqueue.contrib.django_tasks.tasks_api import AnyTask
from jobqueue.policy.retry import Delay, Seconds

#: The fields that belong to all jobs of a task. ``using`` doesn't change them.
OF_A_TYPE = ("backoff", "lease", "aliases")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobQueueTask(AnyTask):
    """A task of this backend. ``None`` means unset, so that ``OPTIONS`` or the defaults apply.

    ``max_attempts`` is the total number of attempts, and ``backoff`` the wait between them: seconds, or what ``@job``
    takes as ``retry``. ``aliases`` are former paths of the function that stored jobs may still have.
    """

    max_attempts: int | None = None
    backoff: Delay | Seconds | None = None
    timeout: Seconds | None = None
    lease: Seconds | None = None
    aliases: Sequence[str] = ()
    expires_at: datetime | None = None
    unique_key: str | None = None
    idempotency_key: str | None = None
    tenant: str | None = None
    workspace: str | None = None

    @classmethod
    def of_function(cls, function: Callable[..., Any], backend: str, queue_name: str) -> JobQueueTask:
        """Return a task of a handler's function, with Django's defaults, which Django 6.0 wants to be given."""
        return cls(func=function, backend=backend, queue_name=queue_name, priority=0, run_after=None)

    def using(
        self,
        *,
        priority: int | None = None,
        queue_name: str | None = None,
        run_after: datetime | timedelta | None = None,
        backend: str | None = None,
        **options: Any,
    ) -> JobQueueTask:
        """Return this task with other options. ``None`` keeps an option, as in Django.

        Besides Django's, the options are max_attempts, timeout, expires_at, unique_key, idempotency_key, tenant and
        workspace.
        """
        if wrong := sorted(options.keys() & set(OF_A_TYPE)):
            raise TypeError(f"using() cannot change {wrong[0]!r}, which belongs to all jobs of the task. See @task().")
        given = {"priority": priority, "queue_name": queue_name, "run_after": run_after, "backend": backend, **options}
        return replace(self, **{name: value for name, value in given.items() if value is not None})
