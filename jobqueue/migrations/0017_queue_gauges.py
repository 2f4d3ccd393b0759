"""The gauges of queues with a capacity, and the keys that are throttled."""

from __future__ import annotations

from django.db import migrations, models

import jobqueue.models.fields as fields


class Migration(migrations.Migration):
    dependencies = [
        ("jobqueue", "0016_completed_by"),
    ]

    operations = [
        migrations.CreateModel(
            name="Gauge",
            fields=[
                (
                    "queue",
                    fields.KeyField(max_length=100, primary_key=True, serialize=False, verbose_name="queue"),
                ),
                ("queued", fields.CountField(null=True, verbose_name="queued")),
                ("sampled_at", fields.MomentField(null=True, verbose_name="sampled at")),
                ("shed", fields.FenceField(db_default=0, verbose_name="shed")),
                ("shed_at", fields.MomentField(null=True, verbose_name="shed at")),
            ],
            options={
                "verbose_name": "gauge",
                "verbose_name_plural": "gauges",
                "db_table": "job_queue_gauge",
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Throttle",
            fields=[
                ("key", fields.KeyField(max_length=255, primary_key=True, serialize=False, verbose_name="key")),
                ("type", fields.NameField(max_length=100, verbose_name="type")),
                ("job_id", fields.NameField(max_length=64, verbose_name="job")),
                ("until", fields.MomentField(verbose_name="until")),
            ],
            options={
                "verbose_name": "throttle",
                "verbose_name_plural": "throttles",
                "db_table": "job_queue_throttle",
                "default_permissions": (),
                "indexes": [models.Index(fields=["until"], name="job_queue_throttle_until")],
            },
        ),
    ]
