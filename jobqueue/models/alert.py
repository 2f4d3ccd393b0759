"""Alerts, and silences."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from jobqueue.models.fields import CountField, DataField, KeyField, MomentField, NameField, WordsField
from jobqueue.records.alert import AlertState

ALERT_STATE_LABELS = [
    (AlertState.PENDING.value, _("pending")),
    (AlertState.FIRING.value, _("firing")),
    (AlertState.RESOLVED.value, _("resolved")),
]


class Alert(models.Model):
    """A problem, from the first sight to its end. Only one alert of a problem is open at a time."""

    id = KeyField(_("id"), primary_key=True, max_length=64)
    key = NameField(_("key"), max_length=100)
    state = NameField(_("state"), max_length=16, choices=ALERT_STATE_LABELS)
    level = CountField(_("level"))
    facts = DataField(_("facts"), default=dict)
    began_at = MomentField(_("began at"))
    seen_at = MomentField(_("last seen at"))
    fired_at = MomentField(_("fired at"), null=True)
    missing_since = MomentField(_("missing since"), null=True)
    told_at = MomentField(_("told at"), null=True)
    reminded_at = MomentField(_("last told at"), null=True)
    resolved_at = MomentField(_("resolved at"), null=True)
    revision = CountField(_("revision"), default=0)
    sent = DataField(_("deliveries"), default=list)

    class Meta:
        db_table = "job_queue_alert"
        verbose_name = _("alert")
        verbose_name_plural = _("alerts")
        default_permissions = ()
        permissions = [("silence_alert", _("Can silence alerts"))]
        constraints = [
            models.UniqueConstraint(fields=["key"], condition=Q(resolved_at__isnull=True), name="job_queue_alert_open")
        ]
        indexes = [
            # Past alerts, the last ones first.
            models.Index(fields=["resolved_at"], condition=Q(resolved_at__isnull=False), name="job_queue_alert_past"),
        ]

    def __str__(self) -> str:
        return f"{self.key} {self.state}"


class Silence(models.Model):
    """Until when nobody is told of an alert, or of all alerts of a rule."""

    key = KeyField(_("key"), primary_key=True, max_length=100)
    until = MomentField(_("until"))
    reason = WordsField(_("reason"))
    author = NameField(_("author"), max_length=255, blank=True, default="")
    made_at = MomentField(_("made at"))

    class Meta:
        db_table = "job_queue_silence"
        verbose_name = _("silence")
        verbose_name_plural = _("silences")
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.key)
