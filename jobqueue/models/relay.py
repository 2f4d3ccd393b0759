"""The state of relaying: one row in each outbox, and one in the shared database for each outbox."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from jobqueue.models.fields import DataField, FlagField, KeyField, MomentField, NameField, WordsField


class Relay(models.Model):
    """An outbox. Its own row has its state; the row in the shared database has its last stored batch."""

    source = KeyField(_("source"), primary_key=True, max_length=64)
    is_own = FlagField(_("is own"), help_text=_("Whether the outbox is in this database."))
    batch = NameField(_("batch"), max_length=64, blank=True, help_text=_("The last batch that was stored."))
    refused = DataField(
        _("refused"), default=dict, help_text=_("The jobs of that batch that were refused, with the reasons.")
    )
    relayed_at = MomentField(_("relayed at"), null=True)
    lost_at = MomentField(_("lost at"), null=True, help_text=_("Since when the shared database has been out of reach."))
    error = WordsField(_("error"), blank=True)

    class Meta:
        db_table = "job_queue_relay"
        verbose_name = _("relay")
        verbose_name_plural = _("relays")
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["is_own"], condition=Q(is_own=True), name="job_queue_relay_own")]

    def __str__(self) -> str:
        return str(self.source)
