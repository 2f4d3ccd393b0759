"""The counters of attempts, which outlive the metrics of single stretches."""

from __future__ import annotations

from django.db import migrations, models

import jobqueue.models.fields as fields


class Migration(migrations.Migration):
    dependencies = [
        ("jobqueue", "0023_shed_over_time"),
    ]

    operations = [
        migrations.CreateModel(
            name="Counter",
            fields=[
                ("id", fields.NumberKey(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("queue", fields.NameField(max_length=100, verbose_name="queue")),
                ("type", fields.NameField(max_length=100, verbose_name="type")),
                ("completed", fields.FenceField(db_default=0, verbose_name="completed")),
                ("retried", fields.FenceField(db_default=0, verbose_name="retried")),
                ("dead_lettered", fields.FenceField(db_default=0, verbose_name="dead-lettered")),
                ("stopped", fields.FenceField(db_default=0, verbose_name="stopped")),
                ("lost", fields.FenceField(db_default=0, verbose_name="lost")),
                ("waited_sum", fields.AmountField(db_default=0.0, help_text="Seconds.", verbose_name="waited, sum")),
                ("ran_sum", fields.AmountField(db_default=0.0, help_text="Seconds.", verbose_name="ran, sum")),
                ("attempts_sum", fields.AmountField(db_default=0.0, verbose_name="attempts, sum")),
                ("waited", fields.DataField(default=dict, verbose_name="waited")),
                ("ran", fields.DataField(default=dict, verbose_name="ran")),
                ("attempts", fields.DataField(default=dict, verbose_name="attempts")),
                ("updated_at", fields.MomentField(verbose_name="updated at")),
            ],
            options={
                "verbose_name": "counter",
                "verbose_name_plural": "counters",
                "db_table": "job_queue_counter",
                "default_permissions": (),
                "constraints": [models.UniqueConstraint(fields=("queue", "type"), name="job_queue_counter_name")],
            },
        ),
    ]
