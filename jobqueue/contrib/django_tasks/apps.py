"""The app of the tasks."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _

from jobqueue.contrib.django_tasks.discovery import discover


class DjangoTasksConfig(AppConfig):
    """Lets workers run the tasks of ``django.tasks`` that are stored as jobs."""

    name = "jobqueue.contrib.django_tasks"
    label = "jobqueue_django_tasks"
    verbose_name = _("Tasks")

    def ready(self) -> None:
        discover()
