"""Schedules."""

from __future__ import annotations

from django.db import migrations, models

import jobqueue.models.fields


class Migration(migrations.Migration):
    dependencies = [
        ("jobqueue", "0019_duty"),
    ]

    operations = [
        migrations.CreateModel(
            name="Schedule",
            fields=[
                (
                    "id",
                    jobqueue.models.fields.KeyField(
                        max_length=64, primary_key=True, serialize=False, verbose_name="id"
                    ),
                ),
                ("name", jobqueue.models.fields.NameField(max_length=100, verbose_name="name")),
                ("type", jobqueue.models.fields.NameField(max_length=100, verbose_name="type")),
                (
                    "rule",
                    jobqueue.models.fields.NameField(
                        help_text="A cron line such as 0 3 * * *, or every 15m.", max_length=200, verbose_name="rule"
                    ),
                ),
                ("zone", jobqueue.models.fields.NameField(max_length=100, verbose_name="time zone")),
                ("payload", jobqueue.models.fields.DataField(default=dict, verbose_name="payload")),
                ("payload_version", jobqueue.models.fields.CountField(default=1, verbose_name="payload version")),
                ("options", jobqueue.models.fields.DataField(default=dict, verbose_name="options")),
                ("start_at", jobqueue.models.fields.MomentField(null=True, verbose_name="start")),
                ("end_at", jobqueue.models.fields.MomentField(null=True, verbose_name="end")),
                ("max_runs", jobqueue.models.fields.CountField(null=True, verbose_name="limit of runs")),
                (
                    "jitter",
                    jobqueue.models.fields.AmountField(
                        default=0.0, help_text="Seconds. Delays all jobs by the same part of it.", verbose_name="jitter"
                    ),
                ),
                (
                    "missed",
                    jobqueue.models.fields.NameField(
                        choices=[("skip", "drop them"), ("once", "run the newest"), ("all", "run all, up to the cap")],
                        default="once",
                        max_length=16,
                        verbose_name="missed slots",
                    ),
                ),
                ("missed_cap", jobqueue.models.fields.CountField(default=100, verbose_name="cap of missed slots")),
                (
                    "overlap",
                    jobqueue.models.fields.NameField(
                        choices=[
                            ("allow", "run beside it"),
                            ("skip", "drop the slot"),
                            ("queue", "run once it has ended"),
                        ],
                        default="allow",
                        max_length=16,
                        verbose_name="overlap",
                    ),
                ),
                (
                    "while_paused",
                    jobqueue.models.fields.NameField(
                        choices=[("drop", "drop them"), ("keep", "treat them as missed")],
                        default="drop",
                        max_length=16,
                        verbose_name="slots of a pause",
                    ),
                ),
                ("origin", jobqueue.models.fields.NameField(default="database", max_length=16, verbose_name="origin")),
                ("declared", jobqueue.models.fields.DataField(default=dict, verbose_name="as the code has it")),
                ("revision", jobqueue.models.fields.CountField(default=0, verbose_name="revision")),
                ("runs", jobqueue.models.fields.CountField(default=0, verbose_name="runs")),
                ("last_slot_at", jobqueue.models.fields.MomentField(verbose_name="last slot")),
                ("next_at", jobqueue.models.fields.MomentField(null=True, verbose_name="next slot")),
                ("missed_at", jobqueue.models.fields.MomentField(null=True, verbose_name="last dropped slot")),
                ("last_job_id", jobqueue.models.fields.NameField(max_length=64, null=True, verbose_name="last job")),
                ("paused_at", jobqueue.models.fields.MomentField(null=True, verbose_name="paused at")),
                ("pause_reason", jobqueue.models.fields.WordsField(blank=True, default="", verbose_name="reason")),
                ("left_code_at", jobqueue.models.fields.MomentField(null=True, verbose_name="left the code at")),
                ("trouble", jobqueue.models.fields.WordsField(blank=True, default="", verbose_name="trouble")),
            ],
            options={
                "verbose_name": "schedule",
                "verbose_name_plural": "schedules",
                "db_table": "job_queue_schedule",
                "permissions": [
                    ("edit_schedule", "Can add and edit schedules"),
                    ("pause_schedule", "Can pause and resume schedules"),
                    ("run_schedule", "Can run schedules now"),
                    ("remove_schedule", "Can remove schedules"),
                ],
                "default_permissions": (),
                "indexes": [
                    models.Index(
                        condition=models.Q(
                            ("left_code_at__isnull", True), ("next_at__isnull", False), ("paused_at__isnull", True)
                        ),
                        fields=["next_at"],
                        name="job_queue_schedule_due",
                    ),
                    models.Index(
                        condition=models.Q(("trouble", ""), _negated=True),
                        fields=["name"],
                        name="job_queue_schedule_trouble",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("name",), name="job_queue_schedule_name"),
                    models.CheckConstraint(
                        condition=models.Q(("jitter__gte", 0), ("jitter__lte", 86400)), name="job_queue_schedule_jitter"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("missed_cap__gte", 1), ("missed_cap__lte", 10000)),
                        name="job_queue_schedule_cap",
                    ),
                ],
            },
        ),
    ]
