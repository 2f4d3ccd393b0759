"""The throttled keys: which job was let through, and how long it stands for others."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from jobqueue.models.fields import KeyField, MomentField, NameField


class Throttle(models.Model):
    """The last job that was let through for a key. Until a moment, further calls with the key get this job."""

    key = KeyField(_("key"), primary_key=True, max_length=255)
    type = NameField(_("type"), max_length=100)
    job_id = NameField(_("job"), max_length=64)
    until = MomentField(_("until"))

    class Meta:
        db_table = "job_queue_throttle"
        verbose_name = _("throttle")
        verbose_name_plural = _("throttles")
        default_permissions = ()
        indexes = [models.Index(fields=["until"], name="job_queue_throttle_until")]

    def __str__(self) -> str:
        return str(self.key)
