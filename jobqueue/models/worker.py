"""The workers: a row for each running one, which it refreshes."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from jobqueue.models.fields import CountField, DataField, KeyField, MomentField, NameField
from jobqueue.records import WorkerRequest, WorkerState

STATE_LABELS = [
    (WorkerState.RUNNING.value, _("running")),
    (WorkerState.QUIET.value, _("quiet")),
    (WorkerState.STOPPING.value, _("stopping")),
]
REQUEST_LABELS = [(WorkerRequest.QUIET.value, _("take no more jobs")), (WorkerRequest.STOP.value, _("stop"))]


class Worker(models.Model):
    """A running worker. A row that is no longer refreshed belongs to a dead one."""

    owner = KeyField(_("owner"), primary_key=True, max_length=255)
    name = NameField(_("name"), max_length=100)
    host = NameField(_("host"), max_length=255)
    pid = CountField(_("process id"))
    version = NameField(_("version"), max_length=32)
    state = NameField(_("state"), max_length=16, choices=STATE_LABELS)
    started_at = MomentField(_("started at"))
    seen_at = MomentField(_("seen at"))
    processes = CountField(_("processes"))
    slots = CountField(_("slots"))
    busy = CountField(_("busy"), help_text=_("The number of slots that run a job."))
    queues = DataField(_("queues"), null=True, help_text=_("If empty, the worker serves all queues."))
    types = DataField(_("types"))
    left_out = DataField(
        _("left out"),
        null=True,
        help_text=_("Jobs that the worker can neither run nor end, by id, each with the reason."),
    )
    lock = NameField(
        _("lock"),
        max_length=100,
        null=True,
        help_text=_("The file that stays locked while a process of the worker lives."),
    )
    asked = NameField(
        _("asked"),
        max_length=16,
        null=True,
        choices=REQUEST_LABELS,
        help_text=_("What an operator asked the worker to do."),
    )

    class Meta:
        db_table = "job_queue_worker"
        verbose_name = _("worker")
        verbose_name_plural = _("workers")
        default_permissions = ()
        permissions = [("control_worker", _("Can quiet and stop workers"))]

    def __str__(self) -> str:
        return str(self.name)
