"""What waits for an operator is found without a walk through what is done."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("jobqueue", "0003_admin"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="job",
            index=models.Index(
                condition=models.Q(("status", "dead_letter")), fields=["queue", "type", "id"], name="job_queue_dead"
            ),
        ),
    ]
