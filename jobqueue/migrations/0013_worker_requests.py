"""What operators ask of workers, the permission to do so, and the permission to enqueue jobs."""

from __future__ import annotations

from django.db import migrations

import jobqueue.models.fields


class Migration(migrations.Migration):
    dependencies = [
        ("jobqueue", "0012_known_error"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="job",
            options={
                "default_permissions": ("view",),
                "permissions": [
                    ("retry_job", "Can retry jobs"),
                    ("cancel_job", "Can cancel jobs"),
                    ("purge_job", "Can purge jobs"),
                    ("edit_job", "Can retry jobs with another payload"),
                    ("run_job", "Can run jobs now"),
                    ("reschedule_job", "Can reschedule jobs"),
                    ("prioritise_job", "Can change the priority of jobs"),
                    ("move_job", "Can move jobs to another queue"),
                    ("enqueue_job", "Can enqueue jobs"),
                ],
                "verbose_name": "job",
                "verbose_name_plural": "jobs",
            },
        ),
        migrations.AlterModelOptions(
            name="worker",
            options={
                "default_permissions": (),
                "permissions": [("control_worker", "Can quiet and stop workers")],
                "verbose_name": "worker",
                "verbose_name_plural": "workers",
            },
        ),
        migrations.AddField(
            model_name="worker",
            name="asked",
            field=jobqueue.models.fields.NameField(
                choices=[("quiet", "take no more jobs"), ("stop", "stop")],
                help_text="What an operator asked the worker to do.",
                max_length=16,
                null=True,
                verbose_name="asked",
            ),
        ),
        migrations.AlterField(
            model_name="job",
            name="status",
            field=jobqueue.models.fields.NameField(
                choices=[
                    ("queued", "queued"),
                    ("in_progress", "in progress"),
                    ("completed", "completed"),
                    ("failed", "cancelled"),
                    ("dead_letter", "dead letter"),
                ],
                db_default="queued",
                max_length=16,
                verbose_name="status",
            ),
        ),
        migrations.AlterField(
            model_name="worker",
            name="state",
            field=jobqueue.models.fields.NameField(
                choices=[("running", "running"), ("quiet", "quiet"), ("stopping", "stopping")],
                max_length=16,
                verbose_name="state",
            ),
        ),
    ]
