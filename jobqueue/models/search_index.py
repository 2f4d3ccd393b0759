"""The index along which jobs that wait for somebody are searched."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.backends.ddl_references import Statement


class SearchIndex(models.Index):
    """An index that also has the error on SQLite, where its entries may be of any length.

    On Postgres, a migration creates an index of the errors' trigrams instead: see ``0015_error_texts``.
    """

    def create_sql(
        self, model: type[models.Model], schema_editor: BaseDatabaseSchemaEditor, using: str = "", **kwargs: Any
    ) -> Statement:
        """Return the statement that creates the index."""
        if schema_editor.connection.vendor != "sqlite":
            return super().create_sql(model, schema_editor, using, **kwargs)
        wide = models.Index(fields=[*self.fields, "error"], name=self.name, condition=self.condition)
        return wide.create_sql(model, schema_editor, using, **kwargs)
