"""Keys of a JSON column, set by the database: what other programs wrote beside them since it was read stays."""

from __future__ import annotations

import json
from typing import Any

from django.db.models import F, Func, JSONField, TextField, Value
from django.db.models.sql.compiler import SQLCompiler


class Merged(Func):
    """A column that holds a JSON object, with other values for some of its keys: neither objects nor ``None``."""

    output_field = JSONField()

    def __init__(self, column: str, changes: dict[str, object]) -> None:
        super().__init__(F(column), Value(json.dumps(changes), output_field=TextField()))

    def as_sqlite(self, compiler: SQLCompiler, connection: Any, **extra: Any) -> Any:
        """Merge as RFC 7396 says."""
        return super().as_sql(compiler, connection, function="json_patch", **extra)

    def as_postgresql(self, compiler: SQLCompiler, connection: Any, **extra: Any) -> Any:
        """Concatenate: of a key on both sides, the right one stays."""
        return super().as_sql(compiler, connection, template="(%(expressions)s::jsonb)", arg_joiner=" || ", **extra)
