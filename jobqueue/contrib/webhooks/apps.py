"""The app of the webhooks."""

from __future__ import annotations

from django.apps import AppConfig
from django.core import checks
from django.utils.translation import gettext_lazy as _

from jobqueue import conf
from jobqueue.contrib.webhooks.checks import check_time_limit


class WebhooksConfig(AppConfig):
    """Provides ``webhook_dispatch``, two tables, and their admin."""

    name = "jobqueue.contrib.webhooks"
    label = "jobqueue_webhooks"
    verbose_name = _("Webhooks")
    default_auto_field = "jobqueue.models.fields.NumberKey"

    def ready(self) -> None:
        checks.register(check_time_limit, conf.CHECKS)
