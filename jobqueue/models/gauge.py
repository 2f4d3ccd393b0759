"""The gauges of queues with a capacity: how many jobs wait, as workers last counted, and how many were shed."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from jobqueue.models.fields import CountField, FenceField, KeyField, MomentField


class Gauge(models.Model):
    """The gauge of one queue. Workers write the depth, and the processes that shed jobs add them up."""

    queue = KeyField(_("queue"), primary_key=True, max_length=100)
    queued = CountField(_("queued"), null=True)
    sampled_at = MomentField(_("sampled at"), null=True)
    shed = FenceField(_("shed"), db_default=0)
    shed_at = MomentField(_("shed at"), null=True)

    class Meta:
        db_table = "job_queue_gauge"
        verbose_name = _("gauge")
        verbose_name_plural = _("gauges")
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.queue)
