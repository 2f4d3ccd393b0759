"""All columns of a job that have a value, in a collapsed fieldset of its page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from django.contrib import admin
from django.db.models import Field
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from jobqueue.admin import display
from jobqueue.models import Job
from jobqueue.observe.reasons import END_REASONS

AdminField = Callable[[Any], Any]
FieldRow = dict[str, Any]


def _shown(column: str, show: Callable[[Any], Any]) -> AdminField:
    """Make a read-only field for a column, with the column's name and its value as ``show`` formats it."""

    described = cast("Field[Any, Any]", Job._meta.get_field(column)).verbose_name

    @admin.display(description=described)
    def field(job: Job) -> Any:
        return show(getattr(job, column))

    field.__name__ = f"shown_{column}"
    return field


def _plain(column: str) -> AdminField:
    return _shown(column, lambda value: value)


def _moment(column: str) -> AdminField:
    return _shown(column, display.in_full)


def _text(column: str) -> AdminField:
    return _shown(column, lambda value: format_html('<span class="jq-mono">{}</span>', value))


#: The fields of each line, by the column that decides whether the field is shown.
ROWS: tuple[FieldRow, ...] = (
    {"id": _text("id"), "idempotency_key": _text("idempotency_key")},
    {"unique_key": _text("unique_key"), "concurrency_key": _text("concurrency_key"), "fair_key": _text("fair_key")},
    {"priority": _plain("priority"), "exact_priority": _plain("exact_priority")},
    {"lane": _text("lane"), "lane_position": _plain("lane_position")},
    {"tenant": _plain("tenant"), "workspace": _plain("workspace")},
    {name: _moment(name) for name in ("created_at", "scheduled_at", "expires_at")},
    {name: _moment(name) for name in ("started_at", "completed_at", "cancel_requested_at", "updated_at")},
    {"lease_owner": _text("lease_owner"), "lease_until": _moment("lease_until"), "fence": _plain("fence")},
    {"completed_by": _text("completed_by")},
    {"timeout": _plain("timeout"), "payload_version": _plain("payload_version"), "crash_count": _plain("crash_count")},
    {
        "end_reason": _shown("end_reason", lambda value: END_REASONS.get(value, value)),
        "error_fingerprint": _text("error_fingerprint"),
    },
    {"parent_id": _text("parent_id"), "schedule_id": _text("schedule_id"), "slot_at": _moment("slot_at")},
)

EVERY_FIELD: list[Any] = [field for row in ROWS for field in row.values()]


def fieldsets(job: Job) -> list[tuple[Any, dict[str, Any]]]:
    """Make one collapsed fieldset of the columns that aren't empty."""
    filled = [[field for column, field in row.items() if getattr(job, column) not in (None, "")] for row in ROWS]
    return [(_("All columns"), {"classes": ["collapse"], "fields": [tuple(fields) for fields in filled if fields]})]
