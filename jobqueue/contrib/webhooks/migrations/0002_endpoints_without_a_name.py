"""Endpoints without a name, any number of them."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobqueue_webhooks", "0001_initial")]

    operations = [
        migrations.AlterField(
            model_name="endpoint",
            name="name",
            field=models.CharField(blank=True, max_length=100, null=True, verbose_name="name"),
        ),
    ]
