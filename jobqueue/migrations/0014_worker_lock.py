"""The lock of a worker, by which its death is proved."""

from __future__ import annotations

from django.db import migrations

import jobqueue.models.fields


class Migration(migrations.Migration):
    dependencies = [
        ("jobqueue", "0013_worker_requests"),
    ]

    operations = [
        migrations.AddField(
            model_name="worker",
            name="lock",
            field=jobqueue.models.fields.NameField(
                help_text="The file that stays locked while a process of the worker lives.",
                max_length=100,
                null=True,
                verbose_name="lock",
            ),
        ),
    ]
