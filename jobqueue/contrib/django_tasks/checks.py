"""The checks of an alias in ``TASKS``."""

from __future__ import annotations

from collections.abc import Iterator

from django.apps import apps
from django.core.checks import CheckMessage, Error
from django.core.checks import Warning as Caution

from jobqueue.contrib.django_tasks.job_types import task_types
from jobqueue.contrib.django_tasks.options import mistakes
from jobqueue.policy.nearest import did_you_mean

_APPS = ("jobqueue", "jobqueue.contrib.django_tasks")


def check_alias(alias: str, options: object) -> Iterator[CheckMessage]:
    """Check the options of an alias, the installed apps, and that a worker finds each task."""
    where, wrong = f"TASKS[{alias!r}]", [*mistakes(options)]
    for mistake in wrong:
        yield Error(f"{where} is wrong: {mistake}", id="jobqueue_django_tasks.E001")
    for app in _APPS:
        if not apps.is_installed(app):
            yield Error(
                f"{where} is a backend of the job queue, but {app!r} is not in INSTALLED_APPS.",
                hint=f"Add {app!r} to INSTALLED_APPS.",
                id="jobqueue_django_tasks.E002",
            )
    if not wrong and isinstance(options, dict):
        yield from _unknown_tasks(where, options.get("tasks", {}))
    yield from _unfound(alias)


def _unknown_tasks(where: str, paths: dict[str, object]) -> Iterator[CheckMessage]:
    known = {kind.name for kind in task_types.registered()}
    for path in paths:
        if path not in known:
            yield Caution(
                f"{where} has options for the task {path!r}, which no module has registered.",
                hint=did_you_mean(path, known),
                id="jobqueue_django_tasks.W001",
            )


def _unfound(alias: str) -> Iterator[CheckMessage]:
    """Warn about tasks that only some processes import, such as web processes that load the URLs."""
    for kind in task_types.registered():
        if kind.name in task_types.late and kind.task.backend == alias:
            module = kind.task.func.__module__
            yield Caution(
                f"The task {kind.name!r} is defined in a module that workers need not import, so its jobs may stay "
                "queued.",
                hint=f"Move it to the module tasks of an installed app, or add {module!r} to OPTIONS['modules'] of "
                f"TASKS[{alias!r}].",
                id="jobqueue_django_tasks.W002",
            )
