"""The rows that handlers write."""

from __future__ import annotations

from django.db import models


class Note(models.Model):
    """A line that somebody wrote."""

    text = models.CharField(max_length=100)

    class Meta:
        app_label = "shelf"

    def __str__(self) -> str:
        return self.text
