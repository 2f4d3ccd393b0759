"""The errors of jobs that wait for somebody are searched in indexes: on SQLite in that of the search, on Postgres by
trigrams.
"""

from __future__ import annotations

from typing import Any

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from jobqueue.models.search_index import SearchIndex

_SEARCHED = [
    *("id", "queue", "type", "tenant", "error_fingerprint", "end_reason"),
    *("completed_at", "created_at", "priority", "attempts"),
]
_WAITING = {"dead": models.Q(("status", "dead_letter")), "failed": models.Q(("status", "failed"))}

# In SQL, because the extension pg_trgm may be missing. The upper case is that of Django's `icontains`. An error has at
# most 4,000 characters, unless another program wrote it.
_TRIGRAMS = """
CREATE OR REPLACE FUNCTION job_queue_trigrams(words text) RETURNS text[]
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE COST 1000 AS $$
SELECT pg_catalog.array_agg(pg_catalog.substr(cut.words, place, 3))
  FROM (SELECT pg_catalog.upper(pg_catalog."left"(words, 4000)) AS words OFFSET 0) AS cut,
       pg_catalog.generate_series(1, pg_catalog.length(cut.words) - 2) AS place
$$
"""
# A small list of what isn't sorted in yet: whoever fills it, sorts it in.
_INDEX = """
CREATE INDEX job_queue_error_texts ON job_queue USING gin (job_queue_trigrams(error))
  WITH (gin_pending_list_limit = 256) WHERE status IN ('dead_letter', 'failed')
"""


def _create(_apps: Any, schema_editor: BaseDatabaseSchemaEditor) -> None:
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(_TRIGRAMS)
        schema_editor.execute(_INDEX)


def _drop(_apps: Any, schema_editor: BaseDatabaseSchemaEditor) -> None:
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("DROP INDEX IF EXISTS job_queue_error_texts")
        schema_editor.execute("DROP FUNCTION IF EXISTS job_queue_trigrams(text)")


class Migration(migrations.Migration):
    dependencies = [
        ("jobqueue", "0014_worker_lock"),
    ]

    operations = [
        *(migrations.RemoveIndex(model_name="job", name=f"job_queue_{name}_order") for name in _WAITING),
        *(
            migrations.AddIndex(
                model_name="job",
                index=SearchIndex(condition=condition, fields=_SEARCHED, name=f"job_queue_{name}_order"),
            )
            for name, condition in _WAITING.items()
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(
                condition=_WAITING["failed"],
                fields=["error_fingerprint", "completed_at", "id"],
                name="job_queue_failed_error",
            ),
        ),
        migrations.RunPython(_create, _drop, elidable=False),
    ]
