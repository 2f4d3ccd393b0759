"""The metrics: a row for each stretch of time, queue and type. Pages and monitors read only these."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.utils.translation import gettext_lazy as _

from jobqueue.models.fields import AmountField, CountField, DataField, FenceField, MomentField, NameField


def _count(label: Any) -> CountField:
    return CountField(label, db_default=0)


def _sum(label: Any) -> AmountField:
    return AmountField(label, db_default=0.0, help_text=_("Seconds."))


class Metric(models.Model):
    """The ends of attempts in one stretch of time, and the depth sampled in it.

    A row with an empty type is the total of its queue; with an empty queue as well, it is the total of everything.
    ``waited`` and ``ran`` are histograms as in ``policy.histogram``; their counts and sums have columns of their own
    for simple queries. The depth is the last sample; ``oldest`` is how long the oldest due job had waited, and
    ``shed`` is how many jobs a queue had shed until then.
    """

    span = CountField(_("length"), help_text=_("Seconds."))
    begins_at = MomentField(_("begins at"))
    queue = NameField(_("queue"), max_length=100)
    type = NameField(_("type"), max_length=100)
    completed = _count(_("completed"))
    retried = _count(_("retried"))
    dead_lettered = _count(_("dead-lettered"))
    stopped = _count(_("stopped"))
    lost = _count(_("lost"))
    waited_count = _count(_("waited, number"))
    waited_sum = _sum(_("waited, sum"))
    ran_count = _count(_("ran, number"))
    ran_sum = _sum(_("ran, sum"))
    queued = CountField(_("queued"), null=True)
    in_progress = CountField(_("in progress"), null=True)
    oldest = AmountField(_("oldest"), null=True, help_text=_("Seconds."))
    shed = FenceField(_("shed"), null=True)
    waited = DataField(_("waited"), default=dict)
    ran = DataField(_("ran"), default=dict)

    class Meta:
        db_table = "job_queue_metric"
        verbose_name = _("metric")
        verbose_name_plural = _("metrics")
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["span", "begins_at", "queue", "type"], name="job_queue_metric_stretch")
        ]

    def __str__(self) -> str:
        return f"{self.queue} {self.type} {self.begins_at} +{self.span} s"


class Dashboard(Metric):
    """The start page of the admin, which shows metrics."""

    class Meta:
        proxy = True
        default_permissions = ()
        verbose_name = _("dashboard")
        verbose_name_plural = _("dashboard")
