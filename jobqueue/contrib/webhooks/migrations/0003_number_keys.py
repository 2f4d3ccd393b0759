"""Primary keys that a row with the largest number doesn't exhaust on SQLite."""

from __future__ import annotations

from django.db import migrations

from jobqueue.models.fields import NumberKey


def _key() -> NumberKey:
    return NumberKey(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")


class Migration(migrations.Migration):
    dependencies = [("jobqueue_webhooks", "0002_endpoints_without_a_name")]

    operations = [
        migrations.AlterField(model_name="delivery", name="id", field=_key()),
        migrations.AlterField(model_name="endpoint", name="id", field=_key()),
    ]
