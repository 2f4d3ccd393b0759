"""The searches that users saved in the admin."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from jobqueue.models.fields import NameField, NumberKey, WordsField


class SavedSearch(models.Model):
    """A search of one user. There is no foreign key, because users may be in another database than jobs."""

    id = NumberKey(primary_key=True)
    user_id = NameField(_("user"), max_length=255)
    listed = NameField(_("list"), max_length=20, help_text=_("The model whose list is searched."))
    name = NameField(_("name"), max_length=100)
    query = WordsField(_("query"), blank=True, help_text=_("The query string of the list's address."))

    class Meta:
        db_table = "job_queue_saved_search"
        default_permissions = ()
        verbose_name = _("saved search")
        verbose_name_plural = _("saved searches")
        constraints = [
            models.UniqueConstraint(fields=["user_id", "listed", "name"], name="job_queue_saved_search_name")
        ]

    def __str__(self) -> str:
        return str(self.name)
