"""When errors were first seen, in which release, and when their jobs were last retried."""

from __future__ import annotations

from django.db import migrations, models

import jobqueue.models.fields


class Migration(migrations.Migration):
    dependencies = [
        ("jobqueue", "0011_order"),
    ]

    operations = [
        migrations.AddField(
            model_name="attempt",
            name="release",
            field=jobqueue.models.fields.NameField(max_length=100, null=True, verbose_name="release"),
        ),
        migrations.CreateModel(
            name="KnownError",
            fields=[
                (
                    "id",
                    jobqueue.models.fields.NumberKey(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("fingerprint", jobqueue.models.fields.NameField(max_length=64, verbose_name="error fingerprint")),
                ("release", jobqueue.models.fields.NameField(blank=True, max_length=100, verbose_name="release")),
                ("first_at", jobqueue.models.fields.MomentField(verbose_name="first seen")),
                ("retried_at", jobqueue.models.fields.MomentField(null=True, verbose_name="retried at")),
            ],
            options={
                "verbose_name": "known error",
                "verbose_name_plural": "known errors",
                "db_table": "job_queue_error",
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(fields=("fingerprint", "release"), name="job_queue_error_release")
                ],
            },
        ),
    ]
