"""The whole schema, on SQLite and on Postgres."""

from __future__ import annotations

from typing import Any

import django.db.models.deletion
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

import jobqueue.models.fields
import jobqueue.states


def tune_autovacuum(_apps: Any, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Have Postgres vacuum early: each job leaves two dead rows, and claims walk over what is not vacuumed."""
    if schema_editor.connection.vendor != "postgresql":
        return
    schema_editor.execute(
        'ALTER TABLE "job_queue" SET ('
        "autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0, "
        "autovacuum_analyze_scale_factor = 0.05)"
    )


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Job",
            fields=[
                (
                    "id",
                    jobqueue.models.fields.KeyField(
                        max_length=64, primary_key=True, serialize=False, verbose_name="id"
                    ),
                ),
                ("type", models.CharField(max_length=100, verbose_name="type")),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("queued", "queued"),
                            ("in_progress", "in progress"),
                            ("completed", "completed"),
                            ("failed", "failed"),
                            ("dead_letter", "dead letter"),
                        ],
                        db_default="queued",
                        max_length=16,
                        verbose_name="status",
                    ),
                ),
                (
                    "priority",
                    models.SmallIntegerField(db_default=5, help_text="1 runs first, 10 last.", verbose_name="priority"),
                ),
                ("scheduled_at", jobqueue.models.fields.MomentField(verbose_name="scheduled at")),
                ("lease_owner", models.CharField(max_length=255, null=True, verbose_name="lease owner")),
                ("lease_until", jobqueue.models.fields.MomentField(null=True, verbose_name="lease until")),
                ("payload", models.JSONField(verbose_name="payload")),
                ("idempotency_key", models.CharField(max_length=255, null=True, verbose_name="idempotency key")),
                ("attempts", models.IntegerField(db_default=0, verbose_name="attempts")),
                (
                    "max_retries",
                    models.IntegerField(
                        db_default=3, help_text="The total number of attempts.", verbose_name="max retries"
                    ),
                ),
                ("error", models.TextField(null=True, verbose_name="error")),
                ("created_at", jobqueue.models.fields.MomentField(verbose_name="created at")),
                ("updated_at", jobqueue.models.fields.MomentField(verbose_name="updated at")),
                ("started_at", jobqueue.models.fields.MomentField(null=True, verbose_name="started at")),
                ("completed_at", jobqueue.models.fields.MomentField(null=True, verbose_name="completed at")),
                ("result", models.JSONField(null=True, verbose_name="result")),
                ("queue", models.CharField(db_default="default", max_length=100, verbose_name="queue")),
                (
                    "fence",
                    models.BigIntegerField(
                        db_default=0,
                        help_text="The number of the claim. It grows with each claim and never decreases.",
                        verbose_name="fence",
                    ),
                ),
                ("unique_key", models.CharField(max_length=255, null=True, verbose_name="unique key")),
                ("tenant", models.CharField(max_length=100, null=True, verbose_name="tenant")),
                ("workspace", models.CharField(max_length=100, null=True, verbose_name="workspace")),
                ("parallel", models.BooleanField(db_default=True, verbose_name="parallel")),
                ("concurrency_key", models.CharField(max_length=255, null=True, verbose_name="concurrency key")),
                ("parent_id", models.CharField(max_length=64, null=True, verbose_name="parent")),
                ("schedule_id", models.CharField(max_length=64, null=True, verbose_name="schedule")),
                ("slot_at", jobqueue.models.fields.MomentField(null=True, verbose_name="slot time")),
                ("payload_version", models.IntegerField(db_default=1, verbose_name="payload version")),
                (
                    "timeout",
                    models.FloatField(
                        help_text="Seconds. If empty, the limit of the job type applies.",
                        null=True,
                        verbose_name="timeout",
                    ),
                ),
                ("expires_at", jobqueue.models.fields.MomentField(null=True, verbose_name="expires at")),
                ("progress", models.JSONField(null=True, verbose_name="progress")),
                (
                    "cancel_requested_at",
                    jobqueue.models.fields.MomentField(null=True, verbose_name="cancel requested at"),
                ),
                ("crash_count", models.IntegerField(db_default=0, verbose_name="crash count")),
                ("end_reason", models.CharField(max_length=100, null=True, verbose_name="end reason")),
                ("error_fingerprint", models.CharField(max_length=64, null=True, verbose_name="error fingerprint")),
                ("context", models.JSONField(null=True, verbose_name="context")),
                (
                    "exact_priority",
                    models.SmallIntegerField(
                        help_text="The priority of django.tasks, from -100 to 100.",
                        null=True,
                        verbose_name="exact priority",
                    ),
                ),
            ],
            options={
                "verbose_name": "job",
                "verbose_name_plural": "jobs",
                "db_table": "job_queue",
                "indexes": [
                    models.Index(
                        condition=models.Q(("status", "queued"), ("priority__gt", 0)),
                        fields=["priority", "scheduled_at", "id"],
                        name="job_queue_ready",
                    ),
                    models.Index(
                        condition=models.Q(("status", "queued")),
                        fields=["queue", "type", "priority", "scheduled_at", "id"],
                        name="job_queue_ready_type",
                    ),
                    models.Index(
                        condition=models.Q(("status", "in_progress")), fields=["lease_until"], name="job_queue_leased"
                    ),
                    models.Index(
                        condition=models.Q(("status", "queued"), ("expires_at__isnull", False)),
                        fields=["expires_at"],
                        name="job_queue_expiring",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("status", "queued"),
                            ("status", "in_progress"),
                            ("status", "completed"),
                            ("status", "failed"),
                            ("status", "dead_letter"),
                            _connector="OR",
                        ),
                        name="job_queue_status",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("priority__gte", 1), ("priority__lte", 10)), name="job_queue_priority"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("timeout__gt", 0), ("timeout__lte", 315360000.0)),
                        name="job_queue_timeout",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("attempts__lte", 1000000000),
                            ("fence__lte", 1000000000),
                            ("max_retries__lte", 1000000000),
                        ),
                        name="job_queue_counts",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("idempotency_key__isnull", False)),
                        fields=("idempotency_key",),
                        name="job_queue_idempotency_key",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(
                            (
                                "status__in",
                                [jobqueue.states.JobStatus["IN_PROGRESS"], jobqueue.states.JobStatus["QUEUED"]],
                            ),
                            ("unique_key__isnull", False),
                        ),
                        fields=("unique_key",),
                        name="job_queue_unique_key",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("schedule_id__isnull", False)),
                        fields=("schedule_id", "slot_at"),
                        name="job_queue_slot",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Pause",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "scope",
                    models.CharField(
                        choices=[("queue", "queue"), ("type", "type")], max_length=8, verbose_name="scope"
                    ),
                ),
                ("name", models.CharField(max_length=100, verbose_name="name")),
                ("reason", models.TextField(blank=True, verbose_name="reason")),
                ("paused_at", jobqueue.models.fields.MomentField(verbose_name="paused at")),
            ],
            options={
                "verbose_name": "pause",
                "verbose_name_plural": "pauses",
                "db_table": "job_queue_pause",
                "constraints": [models.UniqueConstraint(fields=("scope", "name"), name="job_queue_pause_target")],
            },
        ),
        migrations.CreateModel(
            name="Attempt",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("fence", models.BigIntegerField(verbose_name="fence")),
                ("attempt", models.IntegerField(verbose_name="attempt")),
                ("owner", models.CharField(max_length=255, verbose_name="worker")),
                (
                    "ending",
                    models.CharField(
                        choices=[
                            ("failed", "failed"),
                            ("timed_out", "timed out"),
                            ("lease_lost", "lease lost"),
                            ("crashed", "crashed"),
                            ("released", "released"),
                            ("snoozed", "snoozed"),
                            ("cancelled", "cancelled"),
                            ("expired", "expired"),
                            ("invalid", "invalid payload"),
                        ],
                        max_length=16,
                        verbose_name="ending",
                    ),
                ),
                ("error_class", models.CharField(blank=True, max_length=255, verbose_name="error class")),
                ("message", models.TextField(blank=True, verbose_name="message")),
                ("traceback", models.TextField(blank=True, verbose_name="traceback")),
                ("duration", models.FloatField(help_text="Seconds.", null=True, verbose_name="duration")),
                ("ended_at", jobqueue.models.fields.MomentField(verbose_name="ended at")),
                (
                    "job",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="history",
                        to="jobqueue.job",
                        verbose_name="job",
                    ),
                ),
            ],
            options={
                "verbose_name": "attempt",
                "verbose_name_plural": "attempts",
                "db_table": "job_queue_attempt",
                "constraints": [models.UniqueConstraint(fields=("job", "fence"), name="job_queue_attempt_claim")],
            },
        ),
        migrations.RunPython(tune_autovacuum, migrations.RunPython.noop),
    ]
