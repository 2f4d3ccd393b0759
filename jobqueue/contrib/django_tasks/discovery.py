"""The import of modules with tasks: ``tasks`` of each installed app, and those that ``OPTIONS`` lists."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from types import ModuleType

from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import autodiscover_modules

from jobqueue.contrib.django_tasks.backend import JobQueueBackend
from jobqueue.contrib.django_tasks.job_types import task_types
from jobqueue.contrib.django_tasks.options import mistakes
from jobqueue.contrib.django_tasks.tasks_api import AnyTask, Task, task_backends


def aliases() -> Iterator[JobQueueBackend]:
    """Yield the backends of this queue that ``TASKS`` names, without those whose ``OPTIONS`` the checks complain of."""
    for alias in task_backends.settings:
        with suppress(ImproperlyConfigured, ImportError):
            backend = task_backends[alias]
            if isinstance(backend, JobQueueBackend) and not [*mistakes(backend.options)]:
                yield backend


def discover() -> None:
    """Import the modules, and register their tasks, also those of aliases with other backends."""
    autodiscover_modules("tasks")
    ours = [*aliases()]
    modules = [import_module(name) for one in ours for name in one.job_options.modules]
    modules += [sys.modules[name] for app in apps.get_app_configs() if (name := f"{app.name}.tasks") in sys.modules]
    for task in (task for module in modules for task in _tasks_of(module) if ours):
        task_types.register(task, ours[0].job_options.of_task(task.module_path))


def _tasks_of(module: ModuleType) -> list[AnyTask]:
    return [one for one in vars(module).values() if isinstance(one, Task)]
