"""The Django app: it finds the handlers, checks the settings, and listens for what is to be logged."""

from __future__ import annotations

from django.apps import AppConfig
from django.core import checks
from django.utils.module_loading import autodiscover_modules
from django.utils.translation import gettext_lazy as _

from jobqueue.checks import TAG, check_settings


class JobQueueConfig(AppConfig):
    """Starts nothing: no thread, no process, no connection. It imports the ``jobs`` module of every installed app."""

    name = "jobqueue"
    verbose_name = _("Job queue")
    default_auto_field = "jobqueue.models.fields.NumberKey"

    def ready(self) -> None:
        checks.register(check_settings, TAG)
        autodiscover_modules("jobs")
