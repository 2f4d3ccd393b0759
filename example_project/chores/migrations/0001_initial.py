"""Vectors and memories."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Memory",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "kind",
                    models.CharField(
                        choices=[("episodic", "episodic"), ("semantic", "semantic")], default="episodic", max_length=10
                    ),
                ),
                ("content", models.TextField()),
                ("importance", models.FloatField(default=0.5)),
                ("source_type", models.CharField(blank=True, max_length=30)),
                ("source_id", models.CharField(blank=True, max_length=30)),
                ("metadata", models.JSONField(blank=True, default=dict)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
            options={
                "verbose_name_plural": "memories",
            },
        ),
        migrations.CreateModel(
            name="Embedding",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("namespace", models.CharField(max_length=50)),
                ("source_id", models.CharField(max_length=100)),
                ("vector", models.JSONField()),
                ("updated_at", models.DateTimeField(auto_now=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("namespace", "source_id"), name="embeddings_have_one_source")
                ],
            },
        ),
    ]
