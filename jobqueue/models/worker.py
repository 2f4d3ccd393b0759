"""Who runs jobs: one row for each worker that is up, refreshed while it is."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from jobqueue.models.fields import KeyField, MomentField
from jobqueue.records import WorkerState

STATE_LABELS = [(WorkerState.RUNNING.value, _("running")), (WorkerState.STOPPING.value, _("stopping"))]


class Worker(models.Model):
    """One ``runworker``. A row that is not refreshed tells of a worker that died."""

    owner = KeyField(_("owner"), primary_key=True, max_length=255)
    name = models.CharField(_("name"), max_length=100)
    host = models.CharField(_("host"), max_length=255)
    pid = models.IntegerField(_("process id"))
    version = models.CharField(_("version"), max_length=32)
    state = models.CharField(_("state"), max_length=16, choices=STATE_LABELS)
    started_at = MomentField(_("started at"))
    seen_at = MomentField(_("seen at"))
    processes = models.IntegerField(_("processes"))
    slots = models.IntegerField(_("slots"))
    busy = models.IntegerField(_("busy"), help_text=_("How many slots run a job."))
    queues = models.JSONField(_("queues"), null=True, help_text=_("Empty serves all queues."))
    types = models.JSONField(_("types"))

    class Meta:
        db_table = "job_queue_worker"
        verbose_name = _("worker")
        verbose_name_plural = _("workers")
        default_permissions = ()

    def __str__(self) -> str:
        return self.name
