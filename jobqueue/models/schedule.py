"""Schedules, which make jobs at their slots."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from jobqueue.models.fields import (
    AmountField,
    CountField,
    DataField,
    KeyField,
    MomentField,
    NameField,
    WordsField,
)
from jobqueue.records.schedule import Missed, Origin, Overlap, WhilePaused

MISSED_LABELS = [
    (Missed.SKIP.value, _("drop them")),
    (Missed.ONCE.value, _("run the newest")),
    (Missed.ALL.value, _("run all, up to the cap")),
]
OVERLAP_LABELS = [
    (Overlap.ALLOW.value, _("run beside it")),
    (Overlap.SKIP.value, _("drop the slot")),
    (Overlap.QUEUE.value, _("run once it has ended")),
]
WHILE_PAUSED_LABELS = [
    (WhilePaused.DROP.value, _("drop them")),
    (WhilePaused.KEEP.value, _("treat them as missed")),
]
_DUE = Q(next_at__isnull=False, paused_at__isnull=True, left_code_at__isnull=True)
_DAY = 86_400


class Schedule(models.Model):
    """A schedule. ``last_slot_at`` is compared and set by each worker that enqueues a slot's job, so only one wins."""

    id = KeyField(_("id"), primary_key=True, max_length=64)
    name = NameField(_("name"), max_length=100)
    type = NameField(_("type"), max_length=100)
    rule = NameField(_("rule"), max_length=200, help_text=_("A cron line such as 0 3 * * *, or every 15m."))
    zone = NameField(_("time zone"), max_length=100)
    payload = DataField(_("payload"), default=dict)
    payload_version = CountField(_("payload version"), default=1)
    options = DataField(_("options"), default=dict)
    start_at = MomentField(_("start"), null=True)
    end_at = MomentField(_("end"), null=True)
    max_runs = CountField(_("limit of runs"), null=True)
    jitter = AmountField(_("jitter"), default=0.0, help_text=_("Seconds. Delays all jobs by the same part of it."))
    missed = NameField(_("missed slots"), max_length=16, choices=MISSED_LABELS, default=Missed.ONCE.value)
    missed_cap = CountField(_("cap of missed slots"), default=100)
    overlap = NameField(_("overlap"), max_length=16, choices=OVERLAP_LABELS, default=Overlap.ALLOW.value)
    while_paused = NameField(
        _("slots of a pause"), max_length=16, choices=WHILE_PAUSED_LABELS, default=WhilePaused.DROP.value
    )

    origin = NameField(_("origin"), max_length=16, default=Origin.DATABASE.value)
    declared = DataField(_("as the code has it"), default=dict)
    revision = CountField(_("revision"), default=0)
    runs = CountField(_("runs"), default=0)
    last_slot_at = MomentField(_("last slot"))
    next_at = MomentField(_("next slot"), null=True)
    missed_at = MomentField(_("last dropped slot"), null=True)
    last_job_id = NameField(_("last job"), max_length=64, null=True)
    paused_at = MomentField(_("paused at"), null=True)
    pause_reason = WordsField(_("reason"), blank=True, default="")
    left_code_at = MomentField(_("left the code at"), null=True)
    trouble = WordsField(_("trouble"), blank=True, default="")

    class Meta:
        db_table = "job_queue_schedule"
        verbose_name = _("schedule")
        verbose_name_plural = _("schedules")
        default_permissions = ()
        permissions = [
            ("edit_schedule", _("Can add and edit schedules")),
            ("pause_schedule", _("Can pause and resume schedules")),
            ("run_schedule", _("Can run schedules now")),
            ("remove_schedule", _("Can remove schedules")),
        ]
        constraints = [
            models.UniqueConstraint(fields=["name"], name="job_queue_schedule_name"),
            models.CheckConstraint(condition=Q(jitter__gte=0, jitter__lte=_DAY), name="job_queue_schedule_jitter"),
            models.CheckConstraint(
                condition=Q(missed_cap__gte=1, missed_cap__lte=10_000), name="job_queue_schedule_cap"
            ),
        ]
        indexes = [
            # The schedules that may have due slots, and those in trouble.
            models.Index(fields=["next_at"], condition=_DUE, name="job_queue_schedule_due"),
            models.Index(fields=["name"], condition=~Q(trouble=""), name="job_queue_schedule_trouble"),
        ]

    def __str__(self) -> str:
        return str(self.name)
