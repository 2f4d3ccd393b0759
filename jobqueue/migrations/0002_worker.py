"""The registry of workers."""

from __future__ import annotations

from django.db import migrations, models

import jobqueue.models.fields


class Migration(migrations.Migration):
    dependencies = [
        ("jobqueue", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="Worker",
            fields=[
                (
                    "owner",
                    jobqueue.models.fields.KeyField(
                        max_length=255, primary_key=True, serialize=False, verbose_name="owner"
                    ),
                ),
                ("name", models.CharField(max_length=100, verbose_name="name")),
                ("host", models.CharField(max_length=255, verbose_name="host")),
                ("pid", models.IntegerField(verbose_name="process id")),
                ("version", models.CharField(max_length=32, verbose_name="version")),
                (
                    "state",
                    models.CharField(
                        choices=[("running", "running"), ("stopping", "stopping")], max_length=16, verbose_name="state"
                    ),
                ),
                ("started_at", jobqueue.models.fields.MomentField(verbose_name="started at")),
                ("seen_at", jobqueue.models.fields.MomentField(verbose_name="seen at")),
                ("processes", models.IntegerField(verbose_name="processes")),
                ("slots", models.IntegerField(verbose_name="slots")),
                ("busy", models.IntegerField(help_text="The number of slots that run a job.", verbose_name="busy")),
                (
                    "queues",
                    models.JSONField(
                        help_text="If empty, the worker serves all queues.", null=True, verbose_name="queues"
                    ),
                ),
                ("types", models.JSONField(verbose_name="types")),
            ],
            options={
                "verbose_name": "worker",
                "verbose_name_plural": "workers",
                "db_table": "job_queue_worker",
            },
        ),
    ]
