"""What has happened, added up; permissions for what else an operator does; dead letters by error."""

from __future__ import annotations

from django.db import migrations, models

import jobqueue.models.fields


class Migration(migrations.Migration):
    dependencies = [
        ("jobqueue", "0004_dead_letters"),
    ]

    operations = [
        migrations.CreateModel(
            name="Metric",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("span", models.IntegerField(help_text="Seconds.", verbose_name="length")),
                ("begins_at", jobqueue.models.fields.MomentField(verbose_name="begins at")),
                ("queue", models.CharField(max_length=100, verbose_name="queue")),
                ("type", models.CharField(max_length=100, verbose_name="type")),
                ("completed", models.IntegerField(db_default=0, verbose_name="completed")),
                ("retried", models.IntegerField(db_default=0, verbose_name="retried")),
                ("dead_lettered", models.IntegerField(db_default=0, verbose_name="dead-lettered")),
                ("stopped", models.IntegerField(db_default=0, verbose_name="stopped")),
                ("lost", models.IntegerField(db_default=0, verbose_name="lost")),
                ("waited_count", models.IntegerField(db_default=0, verbose_name="waited, number")),
                (
                    "waited_sum",
                    models.FloatField(db_default=0.0, help_text="Seconds.", verbose_name="waited, sum"),
                ),
                ("ran_count", models.IntegerField(db_default=0, verbose_name="ran, number")),
                ("ran_sum", models.FloatField(db_default=0.0, help_text="Seconds.", verbose_name="ran, sum")),
                ("queued", models.IntegerField(null=True, verbose_name="queued")),
                ("in_progress", models.IntegerField(null=True, verbose_name="in progress")),
                ("oldest", models.FloatField(help_text="Seconds.", null=True, verbose_name="oldest")),
                ("waited", models.JSONField(default=dict, verbose_name="waited")),
                ("ran", models.JSONField(default=dict, verbose_name="ran")),
            ],
            options={
                "verbose_name": "metric",
                "verbose_name_plural": "metrics",
                "db_table": "job_queue_metric",
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Queue",
            fields=[],
            options={
                "verbose_name": "queue",
                "verbose_name_plural": "queues",
                "proxy": True,
                "default_permissions": (),
                "indexes": [],
                "constraints": [],
            },
            bases=("jobqueue.pause",),
        ),
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
                ],
                "verbose_name": "job",
                "verbose_name_plural": "jobs",
            },
        ),
        migrations.AlterModelOptions(
            name="pause",
            options={
                "default_permissions": (),
                "permissions": [("pause_queue", "Can pause and resume queues and job types")],
                "verbose_name": "pause",
                "verbose_name_plural": "pauses",
            },
        ),
        migrations.AlterModelOptions(
            name="worker",
            options={"default_permissions": (), "verbose_name": "worker", "verbose_name_plural": "workers"},
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(
                condition=models.Q(("status", "dead_letter")),
                fields=["error_fingerprint", "completed_at", "id"],
                name="job_queue_dead_error",
            ),
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(
                condition=models.Q(("status", "failed")), fields=["queue", "type", "id"], name="job_queue_failed"
            ),
        ),
        migrations.AddConstraint(
            model_name="metric",
            constraint=models.UniqueConstraint(
                fields=("span", "begins_at", "queue", "type"), name="job_queue_metric_stretch"
            ),
        ),
        migrations.CreateModel(
            name="Dashboard",
            fields=[],
            options={
                "verbose_name": "dashboard",
                "verbose_name_plural": "dashboard",
                "proxy": True,
                "default_permissions": (),
                "indexes": [],
                "constraints": [],
            },
            bases=("jobqueue.metric",),
        ),
    ]
