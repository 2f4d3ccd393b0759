"""The Django app: it discovers handlers and registers the system checks."""

from __future__ import annotations

from django.apps import AppConfig
from django.core import checks
from django.utils.module_loading import autodiscover_modules
from django.utils.translation import gettext_lazy as _

from jobqueue.checks import TAG, check_settings


class JobQueueConfig(AppConfig):
    """Imports the ``jobs`` module of each installed app. Starts no thread, no process and no connection."""

    name = "jobqueue"
    verbose_name = _("Job queue")
    default_auto_field = "jobqueue.models.fields.NumberKey"

    def ready(self) -> None:
        checks.register(check_settings, TAG)
        autodiscover_modules("jobs")
