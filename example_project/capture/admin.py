"""The pipeline in the admin: conversations, what was taken out of them, learnings and uploads, as they move.

All of it is the pipeline's own; people look, search, and delete what somebody asks to have deleted.
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
    """Rows that only jobs write."""

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nobody adds by hand."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody changes by hand."""
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
        """Count with the list, not row by row."""
        counted = super().get_queryset(request)
        return counted.annotate(
            message_count=Count("messages", distinct=True), removed_count=Count("sanitization_entries", distinct=True)
        )

    @admin.display(description="messages", ordering="message_count")
    def message_count(self, row: Any) -> int:
        """Say how many messages there are."""
        return int(row.message_count)

    @admin.display(description="taken out", ordering="removed_count")
    def removed_count(self, row: Any) -> int:
        """Say how many stretches were taken out."""
        return int(row.removed_count)

    @admin.display(description="jobs")
    def jobs(self, row: Conversation) -> SafeString:
        """Lead to the jobs that were enqueued for it."""
        return _jobs_of("conversation_id", row.pk)


@admin.register(SanitizationEntry)
class SanitizationEntryAdmin(ReadOnly, _EntryAdmin):
    """What was taken out, by whom."""

    list_display = ["id", "category", "detector", "confidence", "replacement", "created_at"]
    list_filter = ["detector", "category"]
    search_fields = ["conversation__id"]
    ordering = ["-id"]


@admin.register(Learning)
class LearningAdmin(ReadOnly, _LearningAdmin):
    """Learnings, which can be searched for words, and how far each has come."""

    list_display = ["title", "category", "confidence", "tags", "upload_status", "created_at", "jobs"]
    list_filter = ["category", "upload__status"]
    list_select_related = ["upload"]
    search_fields = ["title", "content", "tags"]
    ordering = ["-id"]

    @admin.display(description="upload", ordering="upload__status")
    def upload_status(self, row: Learning) -> str:
        """Say how far the upload is."""
        return row.upload.get_status_display() if hasattr(row, "upload") else "not begun"

    @admin.display(description="jobs")
    def jobs(self, row: Learning) -> SafeString:
        """Lead to the jobs that were enqueued for it."""
        return _jobs_of("learning_id", row.pk)


@admin.register(Upload)
class UploadAdmin(ReadOnly, _UploadAdmin):
    """Uploads, the newest first. None is deleted: its learning would be published a second time."""

    list_display = ["learning", "status", "ipfs_cid", "chain_nonce", "chain_tx_hash", "block", "confirmed_at"]
    list_filter = ["status"]
    list_select_related = ["learning"]
    search_fields = ["ipfs_cid", "chain_tx_hash", "learning__title"]
    ordering = ["-id"]

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody deletes."""
        return False


def _jobs_of(name: str, value: str) -> SafeString:
    address = reverse("admin:jobqueue_job_changelist", query={"q": f"payload.{name}:{value}"})
    return format_html('<a href="{}">jobs</a>', address)
