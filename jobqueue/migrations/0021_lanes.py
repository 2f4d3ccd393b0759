"""The lanes of ordered queues: a job's lane and position, the indexes of lanes, and on Postgres the next position."""

from __future__ import annotations

from typing import Any

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

import jobqueue.models.fields

_IN_LANE = models.Q(("lane__gt", ""), ("lane_position__isnull", False))
_DUE = models.Q(("status", "queued")) & _IN_LANE & models.Q(("scheduled_at__lte", models.F("updated_at")))
_LATER = models.Q(("status", "queued")) & _IN_LANE & models.Q(("scheduled_at__gt", models.F("updated_at")))
_DEAD = models.Q(("status", "dead_letter")) & _IN_LANE
_PLACE = ["queue", "lane", "lane_position", "id"]


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
        *(
            migrations.AddIndex(
                model_name="job", index=models.Index(condition=condition, fields=fields, name=f"job_queue_lane_{name}")
            )
            for name, condition, fields in (
                ("due", _DUE, _PLACE),
                ("later", _LATER, ["queue", "scheduled_at", "id"]),
                ("waiting", _LATER, _PLACE),
                ("dead", _DEAD, _PLACE),
            )
        ),
    ]
