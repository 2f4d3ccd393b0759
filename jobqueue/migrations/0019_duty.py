"""The duties that one worker does for all."""

from __future__ import annotations

from django.db import migrations

import jobqueue.models.fields


class Migration(migrations.Migration):
    dependencies = [
        ("jobqueue", "0018_limits"),
    ]

    operations = [
        migrations.CreateModel(
            name="Duty",
            fields=[
                (
                    "name",
                    jobqueue.models.fields.KeyField(
                        max_length=64, primary_key=True, serialize=False, verbose_name="name"
                    ),
                ),
                ("owner", jobqueue.models.fields.NameField(blank=True, max_length=255, verbose_name="worker")),
                ("due_at", jobqueue.models.fields.MomentField(verbose_name="due at")),
                (
                    "held_until",
                    jobqueue.models.fields.MomentField(
                        help_text="Until then, other workers leave it to this one.", verbose_name="held until"
                    ),
                ),
                ("ran_at", jobqueue.models.fields.MomentField(null=True, verbose_name="last done at")),
                (
                    "seconds",
                    jobqueue.models.fields.AmountField(help_text="Seconds.", null=True, verbose_name="duration"),
                ),
                ("failure", jobqueue.models.fields.WordsField(blank=True, verbose_name="failure")),
                ("failing_since", jobqueue.models.fields.MomentField(null=True, verbose_name="failing since")),
            ],
            options={
                "verbose_name": "duty",
                "verbose_name_plural": "duties",
                "db_table": "job_queue_duty",
                "default_permissions": (),
            },
        ),
    ]
