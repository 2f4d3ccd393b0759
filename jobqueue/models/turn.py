"""What claims took from the turns of fair queues."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from jobqueue.models.fields import AmountField, CountField, MomentField, NameField, SmallCountField


class Turn(models.Model):
    """What one claim took from one turn, for a minute. Rows are only added and deleted."""

    queue = NameField(_("queue"), max_length=100)
    priority = SmallCountField(_("priority"))
    key = NameField(_("fair key"), max_length=255, blank=True)
    count = CountField(_("count"))
    finish = AmountField(_("virtual time"))
    clock = AmountField(_("clock"))
    served_at = MomentField(_("served at"))

    class Meta:
        db_table = "job_queue_turn"
        verbose_name = _("turn")
        verbose_name_plural = _("turns")
        default_permissions = ()
        indexes = [models.Index(fields=["queue", "priority", "id"], name="job_queue_turn_order")]

    def __str__(self) -> str:
        return f"{self.queue} {self.priority} {self.key}".rstrip()
