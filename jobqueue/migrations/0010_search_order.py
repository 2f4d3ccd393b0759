"""What waits for an operator is searched along an index, the newest first; users save searches."""

from __future__ import annotations

from django.db import migrations, models

from jobqueue.models import fields

_SEARCHED = [
    *("id", "queue", "type", "tenant", "error_fingerprint", "end_reason"),
    *("completed_at", "created_at", "priority", "attempts"),
]


class Migration(migrations.Migration):
    dependencies = [
        ("jobqueue", "0009_one_type"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="job",
            index=models.Index(
                condition=models.Q(("status", "dead_letter")), fields=_SEARCHED, name="job_queue_dead_order"
            ),
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(
                condition=models.Q(("status", "failed")), fields=_SEARCHED, name="job_queue_failed_order"
            ),
        ),
        migrations.CreateModel(
            name="SavedSearch",
            fields=[
                ("id", fields.NumberKey(primary_key=True, serialize=False)),
                ("user_id", fields.NameField(max_length=255, verbose_name="user")),
                (
                    "listed",
                    fields.NameField(max_length=20, help_text="The model whose list is searched.", verbose_name="list"),
                ),
                ("name", fields.NameField(max_length=100, verbose_name="name")),
                (
                    "query",
                    fields.WordsField(
                        blank=True, help_text="The query string of the list's address.", verbose_name="query"
                    ),
                ),
            ],
            options={
                "verbose_name": "saved search",
                "verbose_name_plural": "saved searches",
                "db_table": "job_queue_saved_search",
                "default_permissions": (),
            },
        ),
        migrations.AddConstraint(
            model_name="savedsearch",
            constraint=models.UniqueConstraint(
                fields=("user_id", "listed", "name"), name="job_queue_saved_search_name"
            ),
        ),
    ]
