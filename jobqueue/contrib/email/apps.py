"""The app of the e-mail jobs."""

from __future__ import annotations

from django.apps import AppConfig
from django.core import checks
from django.utils.translation import gettext_lazy as _

from jobqueue import conf
from jobqueue.contrib.email.checks import check_courier


class EmailConfig(AppConfig):
    """Provides ``send_email``, which sends the messages that the backend has enqueued."""

    name = "jobqueue.contrib.email"
    label = "jobqueue_email"
    verbose_name = _("E-mail jobs")

    def ready(self) -> None:
        checks.register(check_courier, conf.CHECKS)
