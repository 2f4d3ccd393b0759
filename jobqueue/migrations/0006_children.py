"""The follow-up jobs of a job, found by their parent."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("jobqueue", "0005_metric"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="job",
            index=models.Index(
                condition=models.Q(("parent_id__isnull", False)),
                fields=["parent_id", "id"],
                name="job_queue_children",
            ),
        ),
    ]
