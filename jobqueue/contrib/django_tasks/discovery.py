"""The import of modules with tasks: ``tasks`` of each installed app, and those that ``OPTIONS`` lists."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

from django.apps import apps
from django.utils.module_loading import autodiscover_modules

from jobqueue.contrib.django_tasks import checks, task_types
from jobqueue.contrib.django_tasks.backend import JobQueueBackend
from jobqueue.contrib.django_tasks.tasks_api import Task, task_backends


def aliases() -> Iterator[JobQueueBackend]:
    """Yield the backends of this queue that ``TASKS`` names."""
    for alias, given in task_backends.settings.items():
        if str(given.get("BACKEND", "")).startswith(__package__):
            backend = task_backends[alias]
            if isinstance(backend, JobQueueBackend):
                yield backend


def discover() -> None:
    """Import the modules, and register their tasks, also those of aliases with other backends."""
    ours = [*aliases()]
    autodiscover_modules("tasks")
    named = [name for one in ours for name in one.job_options.modules]
    modules = [import_module(name) for name in named]
    modules += [sys.modules[name] for app in apps.get_app_configs() if (name := f"{app.name}.tasks") in sys.modules]
    for module in modules:
        for task in _tasks_of(module):
            if ours:
                task_types.register(task, ours[0].job_options.of_task(task.module_path))
    checks.found.update(kind.name for kind in task_types.registered())


def _tasks_of(module: ModuleType) -> list[Task]:  # type: ignore[type-arg, unused-ignore]
    return [one for one in vars(module).values() if isinstance(one, Task)]
