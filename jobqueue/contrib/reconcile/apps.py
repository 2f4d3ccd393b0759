"""The app of the reconciliation at a worker's start."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _

from jobqueue import signals
from jobqueue.contrib.reconcile.starting import enqueue_soon


class ReconcileConfig(AppConfig):
    """Provides ``reconcile_jobs``, and enqueues it whenever a worker starts."""

    name = "jobqueue.contrib.reconcile"
    label = "jobqueue_reconcile"
    verbose_name = _("Reconciliation")

    def ready(self) -> None:
        signals.worker_started.connect(enqueue_soon, dispatch_uid="jobqueue.contrib.reconcile")
