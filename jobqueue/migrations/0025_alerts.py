"""Alerts and silences."""

from __future__ import annotations

from django.db import migrations, models

import jobqueue.models.fields


class Migration(migrations.Migration):
    dependencies = [
        ("jobqueue", "0024_metrics"),
    ]

    operations = [
        migrations.CreateModel(
            name="Silence",
            fields=[
                (
                    "key",
                    jobqueue.models.fields.KeyField(
                        max_length=100, primary_key=True, serialize=False, verbose_name="key"
                    ),
                ),
                ("until", jobqueue.models.fields.MomentField(verbose_name="until")),
                ("reason", jobqueue.models.fields.WordsField(verbose_name="reason")),
                (
                    "author",
                    jobqueue.models.fields.NameField(blank=True, default="", max_length=255, verbose_name="author"),
                ),
                ("made_at", jobqueue.models.fields.MomentField(verbose_name="made at")),
            ],
            options={
                "verbose_name": "silence",
                "verbose_name_plural": "silences",
                "db_table": "job_queue_silence",
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Alert",
            fields=[
                (
                    "id",
                    jobqueue.models.fields.KeyField(
                        max_length=64, primary_key=True, serialize=False, verbose_name="id"
                    ),
                ),
                ("key", jobqueue.models.fields.NameField(max_length=100, verbose_name="key")),
                (
                    "state",
                    jobqueue.models.fields.NameField(
                        choices=[("pending", "pending"), ("firing", "firing"), ("resolved", "resolved")],
                        max_length=16,
                        verbose_name="state",
                    ),
                ),
                ("level", jobqueue.models.fields.CountField(verbose_name="level")),
                ("facts", jobqueue.models.fields.DataField(default=dict, verbose_name="facts")),
                ("began_at", jobqueue.models.fields.MomentField(verbose_name="began at")),
                ("seen_at", jobqueue.models.fields.MomentField(verbose_name="last seen at")),
                ("fired_at", jobqueue.models.fields.MomentField(null=True, verbose_name="fired at")),
                ("missing_since", jobqueue.models.fields.MomentField(null=True, verbose_name="missing since")),
                ("told_at", jobqueue.models.fields.MomentField(null=True, verbose_name="told at")),
                ("reminded_at", jobqueue.models.fields.MomentField(null=True, verbose_name="last told at")),
                ("resolved_at", jobqueue.models.fields.MomentField(null=True, verbose_name="resolved at")),
                ("revision", jobqueue.models.fields.CountField(default=0, verbose_name="revision")),
                ("sent", jobqueue.models.fields.DataField(default=list, verbose_name="deliveries")),
            ],
            options={
                "verbose_name": "alert",
                "verbose_name_plural": "alerts",
                "db_table": "job_queue_alert",
                "permissions": [("silence_alert", "Can silence alerts")],
                "default_permissions": (),
                "indexes": [
                    models.Index(
                        condition=models.Q(("resolved_at__isnull", False)),
                        fields=["resolved_at"],
                        name="job_queue_alert_past",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("resolved_at__isnull", True)), fields=("key",), name="job_queue_alert_open"
                    )
                ],
            },
        ),
    ]
