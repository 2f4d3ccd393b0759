"""The counters: sums of the attempts of each queue and type, which outlive the metrics of single stretches."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from jobqueue.models.fields import AmountField, DataField, FenceField, MomentField, NameField


class Counter(models.Model):
    """All attempts of one queue and type that workers have counted so far.

    Unlike metrics, no attempt is in two rows. A row with an empty type has the attempts of its queue whose types have
    no rows of their own, and the one with an empty queue as well those without any other row.
    """

    queue = NameField(_("queue"), max_length=100)
    type = NameField(_("type"), max_length=100)
    completed = FenceField(_("completed"), db_default=0)
    retried = FenceField(_("retried"), db_default=0)
    dead_lettered = FenceField(_("dead-lettered"), db_default=0)
    stopped = FenceField(_("stopped"), db_default=0)
    lost = FenceField(_("lost"), db_default=0)
    waited_sum = AmountField(_("waited, sum"), db_default=0.0, help_text=_("Seconds."))
    ran_sum = AmountField(_("ran, sum"), db_default=0.0, help_text=_("Seconds."))
    attempts_sum = AmountField(_("attempts, sum"), db_default=0.0)
    waited = DataField(_("waited"), default=dict)
    ran = DataField(_("ran"), default=dict)
    attempts = DataField(_("attempts"), default=dict)
    updated_at = MomentField(_("updated at"))

    class Meta:
        db_table = "job_queue_counter"
        verbose_name = _("counter")
        verbose_name_plural = _("counters")
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["queue", "type"], name="job_queue_counter_name")]

    def __str__(self) -> str:
        return f"{self.queue} {self.type}"
