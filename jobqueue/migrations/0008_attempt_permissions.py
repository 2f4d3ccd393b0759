"""No permissions of attempts: whoever may see a job sees its history, and nobody changes it."""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("jobqueue", "0007_relay"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="attempt",
            options={"default_permissions": (), "verbose_name": "attempt", "verbose_name_plural": "attempts"},
        ),
    ]
