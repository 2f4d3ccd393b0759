"""Memories and vectors in the admin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin

from example_project.chores.models import Embedding, Memory

if TYPE_CHECKING:
    _MemoryAdmin = admin.ModelAdmin[Memory]
    _EmbeddingAdmin = admin.ModelAdmin[Embedding]
else:
    _MemoryAdmin = _EmbeddingAdmin = admin.ModelAdmin


@admin.register(Memory)
class MemoryAdmin(_MemoryAdmin):
    """Memories. Episodes may be added by hand."""

    list_display = ["content", "kind", "importance", "source_type", "created_at"]
    list_filter = ["kind"]
    search_fields = ["content"]
    readonly_fields = ["source_type", "source_id", "metadata"]
    ordering = ["-id"]


@admin.register(Embedding)
class EmbeddingAdmin(_EmbeddingAdmin):
    """Vectors by source."""

    list_display = ["namespace", "source_id", "updated_at"]
    list_filter = ["namespace"]
    search_fields = ["source_id"]
    readonly_fields = ["namespace", "source_id", "vector"]
    ordering = ["-id"]
