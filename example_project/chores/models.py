"""What the chores work on: vectors of texts, and memories that are made of others."""

from __future__ import annotations

from django.db import models


class Embedding(models.Model):
    """The vector of a text, under the id that it has elsewhere."""

    namespace = models.CharField(max_length=50)
    source_id = models.CharField(max_length=100)
    vector = models.JSONField()
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["namespace", "source_id"], name="embeddings_have_one_source")]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.source_id}"


class Memory(models.Model):
    """Something remembered: an episode as it happened, or the knowledge that several episodes came to."""

    class Kind(models.TextChoices):
        """What it is."""

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
