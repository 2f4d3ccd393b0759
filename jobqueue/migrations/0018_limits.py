"""Limits that are set at run time, the starts under rates, and an index of the keys of limits."""

from __future__ import annotations

from django.db import migrations, models

import jobqueue.models.fields


class Migration(migrations.Migration):
    dependencies = [
        ("jobqueue", "0017_queue_gauges"),
    ]

    operations = [
        migrations.CreateModel(
            name="Start",
            fields=[
                (
                    "id",
                    jobqueue.models.fields.NumberKey(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("place", jobqueue.models.fields.NameField(max_length=255, verbose_name="place")),
                ("key", jobqueue.models.fields.NameField(blank=True, max_length=255, verbose_name="key")),
                ("count", jobqueue.models.fields.CountField(verbose_name="count")),
                ("ends_at", jobqueue.models.fields.MomentField(verbose_name="ends at")),
            ],
            options={
                "verbose_name": "start",
                "verbose_name_plural": "starts",
                "db_table": "job_queue_start",
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="StoredLimit",
            fields=[
                (
                    "id",
                    jobqueue.models.fields.NumberKey(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "scope",
                    jobqueue.models.fields.NameField(
                        choices=[("queue", "queue"), ("type", "type")], max_length=8, verbose_name="scope"
                    ),
                ),
                ("name", jobqueue.models.fields.NameField(max_length=100, verbose_name="name")),
                (
                    "kind",
                    jobqueue.models.fields.NameField(
                        choices=[("concurrency", "at once"), ("rate", "rate")], max_length=16, verbose_name="kind"
                    ),
                ),
                ("number", jobqueue.models.fields.CountField(verbose_name="number")),
                (
                    "per",
                    jobqueue.models.fields.AmountField(
                        help_text="Seconds. Zero for a limit of jobs that run at once.", verbose_name="per"
                    ),
                ),
                ("key", jobqueue.models.fields.NameField(blank=True, max_length=100, verbose_name="key")),
                ("reason", jobqueue.models.fields.WordsField(blank=True, verbose_name="reason")),
                ("author", jobqueue.models.fields.NameField(blank=True, max_length=150, verbose_name="set by")),
                ("stored_at", jobqueue.models.fields.MomentField(verbose_name="set at")),
            ],
            options={
                "verbose_name": "limit",
                "verbose_name_plural": "limits",
                "db_table": "job_queue_limit",
                "default_permissions": (),
            },
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(
                condition=models.Q(("status", "queued"), ("concurrency_key__isnull", False)),
                fields=["queue", "type", "priority", "concurrency_key", "scheduled_at", "id"],
                name="job_queue_ready_key",
            ),
        ),
        migrations.AddIndex(
            model_name="start",
            index=models.Index(fields=["place", "key", "ends_at"], name="job_queue_start_window"),
        ),
        migrations.AddIndex(
            model_name="start",
            index=models.Index(fields=["ends_at"], name="job_queue_start_end"),
        ),
        migrations.AddConstraint(
            model_name="storedlimit",
            constraint=models.UniqueConstraint(
                fields=("scope", "name", "kind", "per", "key"), name="job_queue_limit_place"
            ),
        ),
        migrations.AddConstraint(
            model_name="storedlimit",
            constraint=models.CheckConstraint(
                condition=models.Q(("number__gte", 1), ("number__lte", 1000000000)), name="job_queue_limit_number"
            ),
        ),
    ]
