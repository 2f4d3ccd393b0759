"""The worker of the attempt that completed a job."""

from __future__ import annotations

from django.db import migrations

import jobqueue.models.fields


class Migration(migrations.Migration):
    dependencies = [
        ("jobqueue", "0015_error_texts"),
    ]

    operations = [
        migrations.AddField(
            model_name="job",
            name="completed_by",
            field=jobqueue.models.fields.NameField(
                help_text="The worker that completed it.", max_length=255, null=True, verbose_name="completed by"
            ),
        ),
    ]
