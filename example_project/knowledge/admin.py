"""Facts and summaries in the admin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin

from example_project.knowledge.models import Fact, Summary

if TYPE_CHECKING:
    _FactAdmin = admin.ModelAdmin[Fact]
    _SummaryAdmin = admin.ModelAdmin[Summary]
else:
    _FactAdmin = _SummaryAdmin = admin.ModelAdmin


@admin.register(Fact)
class FactAdmin(_FactAdmin):
    """Facts, the newest first."""

    list_display = ["topic", "text", "created_at"]
    list_filter = ["topic"]
    search_fields = ["text"]
    ordering = ["-id"]


@admin.register(Summary)
class SummaryAdmin(_SummaryAdmin):
    """Summaries by topic."""

    list_display = ["topic", "facts", "words", "updated_at"]
    readonly_fields = ["topic", "facts", "words"]
    ordering = ["topic"]
