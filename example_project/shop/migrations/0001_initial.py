"""Orders, and the items they take from the shelf."""

from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Order",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("reference", models.CharField(max_length=40, unique=True)),
                ("customer", models.CharField(max_length=100)),
                ("address", models.CharField(blank=True, max_length=200)),
                (
                    "card",
                    models.CharField(
                        choices=[
                            ("good", "good"),
                            ("slow", "no answer at the first attempt"),
                            ("declined", "declined"),
                        ],
                        default="good",
                        max_length=10,
                    ),
                ),
                ("is_paid", models.BooleanField(default=False)),
                ("is_shipped", models.BooleanField(default=False)),
            ],
        ),
        migrations.CreateModel(
            name="StockMovement",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("quantity", models.IntegerField()),
                ("order", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to="shop.order")),
            ],
        ),
    ]
