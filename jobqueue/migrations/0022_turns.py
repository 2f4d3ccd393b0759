"""Fair queues: the value by which they take turns, and what claims took from them."""

from __future__ import annotations

from django.db import migrations, models

import jobqueue.models.fields


class Migration(migrations.Migration):
    dependencies = [
        ("jobqueue", "0021_lanes"),
    ]

    operations = [
        migrations.CreateModel(
            name="Turn",
            fields=[
                (
                    "id",
                    jobqueue.models.fields.NumberKey(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("queue", jobqueue.models.fields.NameField(max_length=100, verbose_name="queue")),
                ("priority", jobqueue.models.fields.SmallCountField(verbose_name="priority")),
                ("key", jobqueue.models.fields.NameField(blank=True, max_length=255, verbose_name="fair key")),
                ("count", jobqueue.models.fields.CountField(verbose_name="count")),
                ("finish", jobqueue.models.fields.AmountField(verbose_name="virtual time")),
                ("clock", jobqueue.models.fields.AmountField(verbose_name="clock")),
                ("served_at", jobqueue.models.fields.MomentField(verbose_name="served at")),
            ],
            options={
                "verbose_name": "turn",
                "verbose_name_plural": "turns",
                "db_table": "job_queue_turn",
                "default_permissions": (),
                "indexes": [models.Index(fields=["queue", "priority", "id"], name="job_queue_turn_order")],
            },
        ),
        migrations.AddField(
            model_name="job",
            name="fair_key",
            field=jobqueue.models.fields.NameField(
                help_text="The value by which a fair queue takes turns.",
                max_length=255,
                null=True,
                verbose_name="fair key",
            ),
        ),
    ]
