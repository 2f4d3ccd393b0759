"""The lanes of ordered queues: a job's lane and position, and on Postgres the sequence of positions."""

from __future__ import annotations

from typing import Any

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

import jobqueue.models.fields


def _create(_apps: Any, schema_editor: BaseDatabaseSchemaEditor) -> None:
    # A sequence, because what it returns grows whatever the snapshot of a transaction shows. It goes with its column.
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("CREATE SEQUENCE job_queue_lane_position OWNED BY job_queue.lane_position")


def _drop(_apps: Any, schema_editor: BaseDatabaseSchemaEditor) -> None:
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("DROP SEQUENCE IF EXISTS job_queue_lane_position")


class Migration(migrations.Migration):
    dependencies = [
        ("jobqueue", "0020_schedule"),
    ]

    operations = [
        migrations.AddField(
            model_name="job",
            name="lane",
            field=jobqueue.models.fields.NameField(max_length=255, null=True, verbose_name="lane"),
        ),
        migrations.AddField(
            model_name="job",
            name="lane_position",
            field=jobqueue.models.fields.FenceField(null=True, verbose_name="position in its lane"),
        ),
        migrations.RunPython(_create, _drop),
    ]
