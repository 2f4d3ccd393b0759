"""The memory of errors: a row for each error and release, which outlives the dead letters."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from jobqueue.models.fields import MomentField, NameField


class KnownError(models.Model):
    """When a release first had an error, and when operators last retried its jobs.

    No job depends on the row. If it is deleted, only this past is lost.
    """

    fingerprint = NameField(_("error fingerprint"), max_length=64)
    release = NameField(_("release"), max_length=100, blank=True)
    first_at = MomentField(_("first seen"))
    retried_at = MomentField(_("retried at"), null=True)

    class Meta:
        db_table = "job_queue_error"
        verbose_name = _("known error")
        verbose_name_plural = _("known errors")
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["fingerprint", "release"], name="job_queue_error_release")]

    def __str__(self) -> str:
        return f"{self.fingerprint} {self.release}".rstrip()
