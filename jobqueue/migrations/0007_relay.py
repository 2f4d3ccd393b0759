"""How far the relaying of jobs to a shared database has come, on both of its sides."""

from __future__ import annotations

from django.db import migrations, models

import jobqueue.models.fields


class Migration(migrations.Migration):
    dependencies = [
        ("jobqueue", "0006_children"),
    ]

    operations = [
        migrations.CreateModel(
            name="Relay",
            fields=[
                (
                    "source",
                    jobqueue.models.fields.KeyField(
                        max_length=64, primary_key=True, serialize=False, verbose_name="source"
                    ),
                ),
                (
                    "is_own",
                    models.BooleanField(help_text="Whether the outbox is in this database.", verbose_name="is own"),
                ),
                (
                    "batch",
                    models.CharField(
                        blank=True, help_text="The last batch that was stored.", max_length=64, verbose_name="batch"
                    ),
                ),
                (
                    "refused",
                    models.JSONField(
                        default=dict,
                        help_text="The jobs of that batch that were refused, with the reasons.",
                        verbose_name="refused",
                    ),
                ),
                ("relayed_at", jobqueue.models.fields.MomentField(null=True, verbose_name="relayed at")),
                (
                    "lost_at",
                    jobqueue.models.fields.MomentField(
                        help_text="Since when the shared database has been out of reach.",
                        null=True,
                        verbose_name="lost at",
                    ),
                ),
                ("error", models.TextField(blank=True, verbose_name="error")),
            ],
            options={
                "verbose_name": "relay",
                "verbose_name_plural": "relays",
                "db_table": "job_queue_relay",
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("is_own", True)), fields=("is_own",), name="job_queue_relay_own"
                    )
                ],
            },
        ),
    ]
