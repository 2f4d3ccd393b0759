"""The tables of the knowledge tool: facts, and a summary of each topic."""

from __future__ import annotations

from django.db import models


class Fact(models.Model):
    """Something that is known about a topic."""

    topic = models.CharField(max_length=100)
    text = models.CharField(max_length=500)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["topic", "text"], name="facts_are_known_once")]

    def __str__(self) -> str:
        return f"{self.topic}: {self.text[:60]}"


class Summary(models.Model):
    """What the facts about a topic have in common, as of the last ``summarise``."""

    topic = models.CharField(max_length=100, unique=True)
    facts = models.IntegerField()
    words = models.JSONField()
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name_plural = "summaries"

    def __str__(self) -> str:
        return f"{self.topic}: {self.facts} facts"
