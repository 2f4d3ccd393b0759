"""The orders of operators, with the ids of their jobs and the jobs that they changed."""

from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models

import jobqueue.models.fields


class Migration(migrations.Migration):
    dependencies = [
        ("jobqueue", "0010_search_order"),
    ]

    operations = [
        migrations.CreateModel(
            name="Order",
            fields=[
                (
                    "id",
                    jobqueue.models.fields.KeyField(
                        max_length=64, primary_key=True, serialize=False, verbose_name="id"
                    ),
                ),
                (
                    "state",
                    jobqueue.models.fields.NameField(
                        choices=[
                            ("asked", "not confirmed yet"),
                            ("waiting", "waiting"),
                            ("running", "running"),
                            ("done", "done"),
                            ("stopped", "stopped"),
                        ],
                        max_length=16,
                        verbose_name="state",
                    ),
                ),
                ("verb", jobqueue.models.fields.NameField(max_length=16, verbose_name="verb")),
                ("user_id", jobqueue.models.fields.NameField(max_length=255, verbose_name="user key")),
                ("title", jobqueue.models.fields.NameField(blank=True, max_length=200, verbose_name="title")),
                ("instruction", jobqueue.models.fields.DataField(verbose_name="instruction")),
                ("wanted", jobqueue.models.fields.DataField(default=dict, verbose_name="filter")),
                ("is_selection", jobqueue.models.fields.FlagField(default=False, verbose_name="is a selection")),
                ("back", jobqueue.models.fields.WordsField(blank=True, verbose_name="address to return to")),
                ("account", jobqueue.models.fields.DataField(default=dict, verbose_name="account")),
                ("steps", jobqueue.models.fields.CountField(default=0, verbose_name="steps")),
                ("total", jobqueue.models.fields.CountField(default=0, verbose_name="total")),
                ("done", jobqueue.models.fields.CountField(default=0, verbose_name="changed")),
                ("left_alone", jobqueue.models.fields.CountField(default=0, verbose_name="left alone")),
                ("seal", jobqueue.models.fields.WordsField(blank=True, verbose_name="seal")),
                ("job_id", jobqueue.models.fields.NameField(max_length=64, null=True, verbose_name="job")),
                ("asked_at", jobqueue.models.fields.MomentField(verbose_name="asked at")),
                ("counted_at", jobqueue.models.fields.MomentField(null=True, verbose_name="counted at")),
                ("given_at", jobqueue.models.fields.MomentField(null=True, verbose_name="given at")),
                ("starts_at", jobqueue.models.fields.MomentField(null=True, verbose_name="starts at")),
                ("began_at", jobqueue.models.fields.MomentField(null=True, verbose_name="began at")),
                ("ended_at", jobqueue.models.fields.MomentField(null=True, verbose_name="ended at")),
                ("why_ended", jobqueue.models.fields.WordsField(blank=True, verbose_name="why it was stopped")),
            ],
            options={
                "verbose_name": "order",
                "verbose_name_plural": "orders",
                "db_table": "job_queue_order",
                "default_permissions": (),
                "indexes": [
                    models.Index(fields=["state", "asked_at"], name="job_queue_order_state"),
                    models.Index(
                        condition=models.Q(("job_id__isnull", False)), fields=["job_id"], name="job_queue_order_by_job"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="OrderedJob",
            fields=[
                ("id", jobqueue.models.fields.NumberKey(primary_key=True, serialize=False)),
                ("job_id", jobqueue.models.fields.NameField(max_length=64, verbose_name="job")),
                (
                    "order",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="jobqueue.order",
                    ),
                ),
            ],
            options={
                "verbose_name": "changed job",
                "verbose_name_plural": "changed jobs",
                "db_table": "job_queue_order_job",
                "default_permissions": (),
                "indexes": [
                    models.Index(fields=["order", "id"], name="job_queue_order_jobs"),
                    models.Index(fields=["job_id", "id"], name="job_queue_orders_of_job"),
                ],
            },
        ),
        migrations.CreateModel(
            name="OrderPart",
            fields=[
                ("id", jobqueue.models.fields.NumberKey(primary_key=True, serialize=False)),
                ("first", jobqueue.models.fields.CountField(verbose_name="first")),
                ("ids", jobqueue.models.fields.DataField(verbose_name="ids")),
                (
                    "order",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="jobqueue.order",
                    ),
                ),
            ],
            options={
                "verbose_name": "part of an order",
                "verbose_name_plural": "parts of orders",
                "db_table": "job_queue_order_part",
                "default_permissions": (),
                "constraints": [models.UniqueConstraint(fields=("order", "first"), name="job_queue_order_part_place")],
            },
        ),
    ]
