"""The tables of the chores: vectors of texts, and memories made of others."""

from __future__ import annotations

from django.db import models


class Embedding(models.Model):
    """The vector of a text, under the text's id elsewhere."""

    namespace = models.CharField(max_length=50)
    source_id = models.CharField(max_length=100)
    vector = models.JSONField()
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["namespace", "source_id"], name="embeddings_have_one_source")]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.source_id}"


class Memory(models.Model):
    """A memory: an episode, or knowledge from several episodes."""

    class Kind(models.TextChoices):
        """The kinds of memories."""

        EPISODIC = "episodic", "episodic"
        SEMANTIC = "semantic", "semantic"

    kind = models.CharField(max_length=10, choices=Kind.choices, default=Kind.EPISODIC)
    content = models.TextField()
    importance = models.FloatField(default=0.5)
    source_type = models.CharField(max_length=30, blank=True)
    source_id = models.CharField(max_length=30, blank=True)
    metadata = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name_plural = "memories"

    def __str__(self) -> str:
        return self.content[:60]
