"""Limits that were set at run time, and the starts that the windows of rates still contain."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from jobqueue.models.fields import AmountField, CountField, MomentField, NameField, WordsField
from jobqueue.models.pause import SCOPE_LABELS
from jobqueue.records import LimitKind

KIND_LABELS = [(LimitKind.CONCURRENCY.value, _("at once")), (LimitKind.RATE.value, _("rate"))]


class StoredLimit(models.Model):
    """A limit of a type or queue that replaces the one in code, until it is deleted."""

    scope = NameField(_("scope"), max_length=8, choices=SCOPE_LABELS)
    name = NameField(_("name"), max_length=100)
    kind = NameField(_("kind"), max_length=16, choices=KIND_LABELS)
    number = CountField(_("number"))
    per = AmountField(_("per"), help_text=_("Seconds. Zero for a limit of jobs that run at once."))
    key = NameField(_("key"), max_length=100, blank=True)
    reason = WordsField(_("reason"), blank=True)
    author = NameField(_("set by"), max_length=150, blank=True)
    stored_at = MomentField(_("set at"))

    class Meta:
        db_table = "job_queue_limit"
        verbose_name = _("limit")
        verbose_name_plural = _("limits")
        default_permissions = ()
        permissions = [("set_limit", _("Can set and unset the limits of queues and job types"))]
        constraints = [
            models.UniqueConstraint(fields=["scope", "name", "kind", "per", "key"], name="job_queue_limit_place"),
            models.CheckConstraint(
                condition=Q(number__gte=1, number__lte=1_000_000_000), name="job_queue_limit_number"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.scope} {self.name}: {self.number}"


class Start(models.Model):
    """The starts that one claim made under a rate, until they leave its window. Rows are only added and deleted."""

    place = NameField(_("place"), max_length=255)
    key = NameField(_("key"), max_length=255, blank=True)
    count = CountField(_("count"))
    ends_at = MomentField(_("ends at"))

    class Meta:
        db_table = "job_queue_start"
        verbose_name = _("start")
        verbose_name_plural = _("starts")
        default_permissions = ()
        indexes = [
            models.Index(fields=["place", "key", "ends_at"], name="job_queue_start_window"),
            models.Index(fields=["ends_at"], name="job_queue_start_end"),
        ]

    def __str__(self) -> str:
        return f"{self.place} {self.key}".rstrip()
