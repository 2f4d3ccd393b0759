"""A backend for ``django.tasks``, or for the package ``django-tasks`` where Django has none."""

from __future__ import annotations

from jobqueue.contrib.django_tasks.backend import JobQueueBackend
from jobqueue.contrib.django_tasks.conversion import as_handler, as_task
from jobqueue.contrib.django_tasks.task import JobQueueTask

__all__ = ["JobQueueBackend", "JobQueueTask", "as_handler", "as_task"]
