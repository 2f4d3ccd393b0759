"""How many jobs queues have shed over time, and the permission to set limits."""

from __future__ import annotations

from django.db import migrations

import jobqueue.models.fields as fields


class Migration(migrations.Migration):
    dependencies = [
        ("jobqueue", "0022_turns"),
    ]

    operations = [
        migrations.AddField(
            model_name="metric",
            name="shed",
            field=fields.FenceField(null=True, verbose_name="shed"),
        ),
        migrations.AlterModelOptions(
            name="storedlimit",
            options={
                "default_permissions": (),
                "permissions": [("set_limit", "Can set and unset the limits of queues and job types")],
                "verbose_name": "limit",
                "verbose_name_plural": "limits",
            },
        ),
    ]
