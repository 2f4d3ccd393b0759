"""The indexes of lanes and turns. They have a migration of their own, so that jobs can be read while they are made."""

from __future__ import annotations

from django.db import migrations, models

_IN_LANE = models.Q(("lane__gt", ""), ("lane_position__isnull", False))
_DUE = models.Q(("status", "queued")) & _IN_LANE & models.Q(("scheduled_at__lte", models.F("updated_at")))
_LATER = models.Q(("status", "queued")) & _IN_LANE & models.Q(("scheduled_at__gt", models.F("updated_at")))
_DEAD = models.Q(("status", "dead_letter")) & _IN_LANE
_IN_TURN = models.Q(("status", "queued"), ("fair_key__isnull", False))
_PLACE = ["queue", "lane", "lane_position", "id"]


class Migration(migrations.Migration):
    dependencies = [
        ("jobqueue", "0025_alerts"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="job", index=models.Index(condition=condition, fields=fields, name=f"job_queue_{name}")
        )
        for name, condition, fields in (
            ("lane_due", _DUE, _PLACE),
            ("lane_later", _LATER, ["queue", "scheduled_at", "id"]),
            ("lane_waiting", _LATER, _PLACE),
            ("lane_dead", _DEAD, _PLACE),
            ("ready_turn", _IN_TURN, ["queue", "type", "priority", "fair_key", "scheduled_at", "id"]),
        )
    ]
