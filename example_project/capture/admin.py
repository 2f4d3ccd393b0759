"""The pipeline in the admin: conversations, findings, learnings and uploads.

Only the pipeline writes these rows. Users look at them, search them, and delete them on request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db.models import Count, Model, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from example_project.capture.models import Conversation, Learning, Message, SanitizationEntry, Upload

if TYPE_CHECKING:
    _ConversationAdmin = admin.ModelAdmin[Conversation]
    _EntryAdmin = admin.ModelAdmin[SanitizationEntry]
    _LearningAdmin = admin.ModelAdmin[Learning]
    _UploadAdmin = admin.ModelAdmin[Upload]
    _MessageInline = admin.StackedInline[Message, Conversation]
else:
    _ConversationAdmin = _EntryAdmin = _LearningAdmin = _UploadAdmin = admin.ModelAdmin
    _MessageInline = admin.StackedInline


class ReadOnly:
    """A base for rows that only jobs write."""

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Rows are never added by hand."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Rows are never changed by hand."""
        return False


class MessageInline(ReadOnly, _MessageInline):
    """The messages of a conversation."""

    model = Message
    fields = ["role", "content", "sanitization_version"]
    ordering = ["position"]
    extra = 0
    can_delete = False


@admin.register(Conversation)
class ConversationAdmin(ReadOnly, _ConversationAdmin):
    """Conversations, the newest first."""

    list_display = ["id", "source", "status", "message_count", "removed_count", "created_at", "jobs"]
    list_filter = ["status", "source"]
    search_fields = ["id"]
    ordering = ["-id"]
    inlines = [MessageInline]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Conversation]:
        """Count in the list's query instead of row by row."""
        counted = super().get_queryset(request)
        return counted.annotate(
            message_count=Count("messages", distinct=True), removed_count=Count("sanitization_entries", distinct=True)
        )

    @admin.display(description="messages", ordering="message_count")
    def message_count(self, row: Any) -> int:
        """Return the number of messages."""
        return int(row.message_count)

    @admin.display(description="taken out", ordering="removed_count")
    def removed_count(self, row: Any) -> int:
        """Return the number of removed passages."""
        return int(row.removed_count)

    @admin.display(description="jobs")
    def jobs(self, row: Conversation) -> SafeString:
        """Return a link to the jobs of this conversation."""
        return _jobs_of("conversation_id", row.pk)


@admin.register(SanitizationEntry)
class SanitizationEntryAdmin(ReadOnly, _EntryAdmin):
    """Removed passages, with the detector that found them."""

    list_display = ["id", "category", "detector", "confidence", "replacement", "created_at"]
    list_filter = ["detector", "category"]
    search_fields = ["conversation__id"]
    ordering = ["-id"]


@admin.register(Learning)
class LearningAdmin(ReadOnly, _LearningAdmin):
    """Learnings, with a full-text search and the status of their upload."""

    list_display = ["title", "category", "confidence", "tags", "upload_status", "created_at", "jobs"]
    list_filter = ["category", "upload__status"]
    list_select_related = ["upload"]
    search_fields = ["title", "content", "tags"]
    ordering = ["-id"]

    @admin.display(description="upload", ordering="upload__status")
    def upload_status(self, row: Learning) -> str:
        """Return the status of the upload."""
        return row.upload.get_status_display() if hasattr(row, "upload") else "not begun"

    @admin.display(description="jobs")
    def jobs(self, row: Learning) -> SafeString:
        """Return a link to the jobs of this learning."""
        return _jobs_of("learning_id", row.pk)


@admin.register(Upload)
class UploadAdmin(ReadOnly, _UploadAdmin):
    """Uploads, the newest first. They can't be deleted, because their learnings would be published again."""

    list_display = ["learning", "status", "ipfs_cid", "chain_nonce", "chain_tx_hash", "block", "confirmed_at"]
    list_filter = ["status"]
    list_select_related = ["learning"]
    search_fields = ["ipfs_cid", "chain_tx_hash", "learning__title"]
    ordering = ["-id"]

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Uploads are never deleted."""
        return False


def _jobs_of(name: str, value: str) -> SafeString:
    address = reverse("admin:jobqueue_job_changelist", query={"q": f"payload.{name}:{value}"})
    return format_html('<a href="{}">jobs</a>', address)
