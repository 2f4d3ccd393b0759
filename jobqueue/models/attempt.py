"""The history of a job: a row for each attempt that did not succeed. The job itself records its success."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from jobqueue.models.fields import AmountField, CountField, FenceField, MomentField, NameField, WordsField
from jobqueue.models.job import Job
from jobqueue.records import Ending

ENDING_LABELS = [
    (Ending.FAILED.value, _("failed")),
    (Ending.TIMED_OUT.value, _("timed out")),
    (Ending.LEASE_LOST.value, _("lease lost")),
    (Ending.CRASHED.value, _("crashed")),
    (Ending.RELEASED.value, _("released")),
    (Ending.SNOOZED.value, _("snoozed")),
    (Ending.CANCELLED.value, _("cancelled")),
    (Ending.EXPIRED.value, _("expired")),
    (Ending.INVALID.value, _("invalid payload")),
]


class Attempt(models.Model):
    """An attempt that did not succeed. Unique by job and fence, because attempt numbers repeat after a release."""

    # No constraint in the database, because other programs may DELETE the job.
    job = models.ForeignKey(
        Job,
        on_delete=models.DO_NOTHING,
        related_name="history",
        db_constraint=False,
        db_index=False,
        verbose_name=_("job"),
    )
    fence = FenceField(_("fence"))
    attempt = CountField(_("attempt"))
    owner = NameField(_("worker"), max_length=255)
    ending = NameField(_("ending"), max_length=16, choices=ENDING_LABELS)
    error_class = NameField(_("error class"), max_length=255, blank=True)
    message = WordsField(_("message"), blank=True)
    traceback = WordsField(_("traceback"), blank=True)
    duration = AmountField(_("duration"), null=True, help_text=_("Seconds."))
    ended_at = MomentField(_("ended at"))
    release = NameField(_("release"), max_length=100, null=True)

    class Meta:
        db_table = "job_queue_attempt"
        default_permissions = ()
        verbose_name = _("attempt")
        verbose_name_plural = _("attempts")
        constraints = [models.UniqueConstraint(fields=["job", "fence"], name="job_queue_attempt_claim")]

    def __str__(self) -> str:
        return f"{self.job_id} #{self.attempt}: {self.ending}"
