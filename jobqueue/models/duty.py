"""The duties that one worker does for all: a row for each."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from jobqueue.models.fields import AmountField, KeyField, MomentField, NameField, WordsField


class Duty(models.Model):
    """A duty, and the worker that does it. A worker adds a missing row, so any row may be deleted."""

    name = KeyField(_("name"), primary_key=True, max_length=64)
    owner = NameField(_("worker"), max_length=255, blank=True)
    due_at = MomentField(_("due at"))
    held_until = MomentField(_("held until"), help_text=_("Until then, other workers leave it to this one."))
    ran_at = MomentField(_("last done at"), null=True)
    seconds = AmountField(_("duration"), null=True, help_text=_("Seconds."))
    failure = WordsField(_("failure"), blank=True)
    failing_since = MomentField(_("failing since"), null=True)

    class Meta:
        db_table = "job_queue_duty"
        verbose_name = _("duty")
        verbose_name_plural = _("duties")
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.name)
