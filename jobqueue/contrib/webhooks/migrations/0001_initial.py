"""The endpoints and the log of deliveries."""

from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models

import jobqueue.contrib.webhooks.models
import jobqueue.contrib.webhooks.signing
import jobqueue.models.fields


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Endpoint",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=100, verbose_name="name")),
                (
                    "url",
                    models.CharField(
                        max_length=2000, validators=[jobqueue.contrib.webhooks.models.check_url], verbose_name="URL"
                    ),
                ),
                (
                    "secret",
                    models.CharField(
                        default=jobqueue.contrib.webhooks.signing.new_secret, max_length=500, verbose_name="secret"
                    ),
                ),
                (
                    "previous_secret",
                    models.CharField(blank=True, default="", max_length=500, verbose_name="previous secret"),
                ),
                (
                    "previous_until",
                    jobqueue.models.fields.MomentField(
                        blank=True, null=True, verbose_name="previous secret is used until"
                    ),
                ),
                ("enabled", models.BooleanField(default=True, verbose_name="enabled")),
                (
                    "disabled_reason",
                    models.CharField(blank=True, default="", max_length=500, verbose_name="why disabled"),
                ),
                ("failures", models.PositiveIntegerField(default=0, verbose_name="failures in a row")),
                (
                    "failing_since",
                    jobqueue.models.fields.MomentField(blank=True, null=True, verbose_name="failing since"),
                ),
                (
                    "delivered_at",
                    jobqueue.models.fields.MomentField(blank=True, null=True, verbose_name="last delivered at"),
                ),
                (
                    "created_at",
                    jobqueue.models.fields.MomentField(
                        default=jobqueue.contrib.webhooks.models.now, editable=False, verbose_name="created at"
                    ),
                ),
            ],
            options={
                "verbose_name": "endpoint",
                "verbose_name_plural": "endpoints",
                "constraints": [models.UniqueConstraint(fields=("name",), name="jobqueue_webhooks_name")],
            },
        ),
        migrations.CreateModel(
            name="Delivery",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "delivery_id",
                    models.CharField(
                        help_text="The job's id, the same for each attempt.", max_length=64, verbose_name="delivery id"
                    ),
                ),
                ("event", models.CharField(max_length=100, verbose_name="event")),
                ("attempt", models.PositiveIntegerField(verbose_name="attempt")),
                (
                    "outcome",
                    models.CharField(
                        choices=[("delivered", "delivered"), ("failed", "failed")],
                        max_length=10,
                        verbose_name="outcome",
                    ),
                ),
                ("status_code", models.PositiveSmallIntegerField(null=True, verbose_name="status code")),
                ("reason", models.CharField(blank=True, max_length=500, verbose_name="reason")),
                ("answer", models.TextField(blank=True, verbose_name="answer")),
                ("duration", models.FloatField(help_text="Seconds.", verbose_name="duration")),
                ("sent_at", jobqueue.models.fields.MomentField(verbose_name="sent at")),
                (
                    "endpoint",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="jobqueue_webhooks.endpoint",
                        verbose_name="endpoint",
                    ),
                ),
            ],
            options={
                "verbose_name": "delivery",
                "verbose_name_plural": "deliveries",
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(fields=["delivery_id"], name="jobqueue_webhooks_of_job"),
                    models.Index(fields=["sent_at"], name="jobqueue_webhooks_sent_at"),
                ],
            },
        ),
    ]
