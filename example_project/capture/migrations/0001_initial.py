"""Conversations, findings, learnings and uploads."""

from __future__ import annotations

import django.core.validators
import django.db.models.deletion
from django.db import migrations, models

import example_project.capture.models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Conversation",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=example_project.capture.models.new_id,
                        editable=False,
                        max_length=26,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("source", models.CharField(max_length=50)),
                (
                    "status",
                    models.CharField(
                        choices=[("captured", "captured"), ("validated", "validated"), ("learned", "learned from")],
                        default="captured",
                        max_length=10,
                    ),
                ),
                ("metadata", models.JSONField(blank=True, default=dict)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
            ],
            options={
                "db_table": "conversations",
                "indexes": [models.Index(fields=["status", "created_at"], name="conversations_by_status")],
            },
        ),
        migrations.CreateModel(
            name="Learning",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=example_project.capture.models.new_id,
                        editable=False,
                        max_length=26,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("category", models.CharField(max_length=30)),
                ("title", models.CharField(max_length=120)),
                ("content", models.TextField()),
                (
                    "confidence",
                    models.FloatField(
                        validators=[
                            django.core.validators.MinValueValidator(0.0),
                            django.core.validators.MaxValueValidator(1.0),
                        ]
                    ),
                ),
                ("tags", models.JSONField(blank=True, default=list)),
                ("dedupe_hash", models.CharField(max_length=64, unique=True)),
                ("source_message_ids", models.JSONField(default=list)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "conversation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="learnings", to="capture.conversation"
                    ),
                ),
            ],
            options={
                "db_table": "learnings",
            },
        ),
        migrations.CreateModel(
            name="Message",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=example_project.capture.models.new_id,
                        editable=False,
                        max_length=26,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("position", models.PositiveIntegerField()),
                ("role", models.CharField(max_length=10)),
                ("content", models.TextField()),
                ("sanitization_version", models.CharField(max_length=20)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "conversation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="messages", to="capture.conversation"
                    ),
                ),
            ],
            options={
                "db_table": "messages",
                "ordering": ["conversation", "position"],
            },
        ),
        migrations.CreateModel(
            name="SanitizationEntry",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=example_project.capture.models.new_id,
                        editable=False,
                        max_length=26,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("category", models.CharField(max_length=30)),
                ("original_snippet_hash", models.CharField(max_length=64)),
                ("replacement", models.CharField(max_length=40)),
                ("detector", models.CharField(choices=[("rules", "rules"), ("ai", "AI")], max_length=10)),
                ("confidence", models.FloatField()),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "conversation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="sanitization_entries",
                        to="capture.conversation",
                    ),
                ),
                (
                    "message",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="sanitization_entries",
                        to="capture.message",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "sanitization entries",
                "db_table": "sanitization_log",
            },
        ),
        migrations.CreateModel(
            name="Upload",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=example_project.capture.models.new_id,
                        editable=False,
                        max_length=26,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("ipfs_uploaded", "stored"),
                            ("tx_submitted", "transaction sent"),
                            ("confirmed", "confirmed"),
                        ],
                        max_length=15,
                    ),
                ),
                ("ipfs_cid", models.CharField(max_length=100)),
                ("chain_account", models.CharField(blank=True, max_length=100, null=True)),
                ("chain_nonce", models.BigIntegerField(blank=True, null=True)),
                ("signed_transaction", models.TextField(blank=True, null=True)),
                ("chain_tx_hash", models.CharField(blank=True, max_length=66, null=True)),
                ("block", models.BigIntegerField(blank=True, null=True)),
                ("uploaded_at", models.DateTimeField()),
                ("confirmed_at", models.DateTimeField(blank=True, null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                (
                    "learning",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, related_name="upload", to="capture.learning"
                    ),
                ),
            ],
            options={
                "db_table": "uploads",
            },
        ),
        migrations.AddConstraint(
            model_name="message",
            constraint=models.UniqueConstraint(fields=("conversation", "position"), name="messages_have_places"),
        ),
        migrations.AddConstraint(
            model_name="upload",
            constraint=models.UniqueConstraint(
                fields=("chain_account", "chain_nonce"), name="uploads_number_transactions"
            ),
        ),
    ]
