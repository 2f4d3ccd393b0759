"""The same table in a plain ModelAdmin with columns, filters and a search."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin

from jobqueue.models import Job

if TYPE_CHECKING:
    Base = admin.ModelAdmin[Job]
else:
    Base = admin.ModelAdmin


class PlainJobs(Base):
    """A first, simple ModelAdmin."""

    list_display = ["id", "type", "status", "queue", "priority", "tenant", "created_at", "attempts", "error"]
    list_filter = ["status", "type", "queue"]
    search_fields = ["id", "type", "error", "payload"]


plain = admin.AdminSite(name="plain")
plain.register(Job, PlainJobs)
