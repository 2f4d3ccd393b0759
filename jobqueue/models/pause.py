"""The paused queues and types. Workers take none of their jobs until the row is deleted."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from jobqueue.models.fields import MomentField, NameField, WordsField
from jobqueue.records import Scope

SCOPE_LABELS = [(Scope.QUEUE.value, _("queue")), (Scope.TYPE.value, _("type"))]


class Pause(models.Model):
    """A paused queue or job type."""

    scope = NameField(_("scope"), max_length=8, choices=SCOPE_LABELS)
    name = NameField(_("name"), max_length=100)
    reason = WordsField(_("reason"), blank=True)
    paused_at = MomentField(_("paused at"))

    class Meta:
        db_table = "job_queue_pause"
        verbose_name = _("pause")
        verbose_name_plural = _("pauses")
        default_permissions = ()
        permissions = [("pause_queue", _("Can pause and resume queues and job types"))]
        constraints = [
            models.UniqueConstraint(fields=["scope", "name"], name="job_queue_pause_target"),
            models.CheckConstraint(
                condition=Q(scope=Scope.QUEUE.value) | Q(scope=Scope.TYPE.value), name="job_queue_pause_scope"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_scope_display()} {self.name}"


class Queue(Pause):
    """The queues in the admin. They have no table, because any job may name a new one."""

    class Meta:
        proxy = True
        default_permissions = ()
        verbose_name = _("queue")
        verbose_name_plural = _("queues")
