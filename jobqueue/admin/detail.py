"""One job on its page: what is shown of it, in which order, and its history. What is empty is not shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.db.models import Field
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from jobqueue import conf
from jobqueue.admin import display
from jobqueue.models import Attempt, Job
from jobqueue.policy.redaction import redact_text, secret_values

#: Of a history longer than this the page shows the end.
ATTEMPTS_SHOWN = 50

Shown = Callable[[Any], Any]


def _shown(column: str, show: Callable[[Any, Job], Any]) -> Shown:
    """Make a read-only field of a column: its name, and its value by ``show``."""

    described = cast("Field[Any, Any]", Job._meta.get_field(column)).verbose_name

    @admin.display(description=described)
    def field(job: Job) -> Any:
        return show(getattr(job, column), job)

    field.__name__ = f"shown_{column}"
    return field


def _plain(column: str) -> Shown:
    return _shown(column, lambda value, _job: value)


def _moment(column: str) -> Shown:
    return _shown(column, lambda value, _job: display.in_full(value))


def _json(column: str) -> Shown:
    return _shown(column, lambda value, _job: display.json_block(value))


def _text(column: str) -> Shown:
    return _shown(column, lambda value, _job: format_html('<span class="jq-mono">{}</span>', value))


def _status(_value: str, job: Job) -> Any:
    shown = display.badge(job.status, job.get_status_display())
    if job.status == "in_progress" and job.cancel_requested_at:
        return format_html('{} <span class="jq-quiet">{}</span>', shown, gettext("asked to stop"))
    return shown


def _attempts(value: int, job: Job) -> str:
    return gettext("%(made)d of %(allowed)d") % {"made": value, "allowed": job.max_retries}


def _error(value: str, job: Job) -> Any:
    return display.text_block(value, secret_values(job.payload))


def _parent(value: str, _job: Job) -> Any:
    try:
        return format_html(
            '<a class="jq-mono" href="{}">{}</a>', reverse("admin:jobqueue_job_change", args=[quote(value)]), value
        )
    except NoReverseMatch:  # a site of another name
        return value


Row = dict[str, Any]

#: The rows of each part; every field by the column that decides whether it is shown.
PARTS: tuple[tuple[Any, tuple[Row, ...]], ...] = (
    (
        None,
        (
            {"status": _shown("status", _status), "end_reason": _plain("end_reason")},
            {
                "type": _text("type"),
                "queue": _plain("queue"),
                "priority": _plain("priority"),
                "attempts": _shown("attempts", _attempts),
            },
            {"tenant": _plain("tenant"), "workspace": _plain("workspace")},
            {"progress": _json("progress")},
            {"error": _shown("error", _error)},
        ),
    ),
    (_("Payload and result"), ({"payload": _json("payload")}, {"result": _json("result")})),
    (
        _("Times"),
        (
            {name: _moment(name) for name in ("created_at", "scheduled_at", "expires_at", "slot_at")},
            {name: _moment(name) for name in ("started_at", "completed_at", "cancel_requested_at", "updated_at")},
        ),
    ),
    (_("Claim"), ({"lease_owner": _text("lease_owner"), "lease_until": _moment("lease_until")},)),
    (
        _("Keys and origin"),
        (
            {"id": _text("id"), "parent_id": _shown("parent_id", _parent), "schedule_id": _text("schedule_id")},
            {name: _text(name) for name in ("idempotency_key", "unique_key", "concurrency_key")},
            {
                "timeout": _plain("timeout"),
                "exact_priority": _plain("exact_priority"),
                "payload_version": _plain("payload_version"),
                "fence": _plain("fence"),
                "crash_count": _plain("crash_count"),
            },
            {"context": _json("context")},
        ),
    ),
)

EVERY_FIELD: list[Any] = [field for _title, rows in PARTS for row in rows for field in row.values()]


def parts(job: Job) -> list[tuple[Any, dict[str, Any]]]:
    """Lay out a job as fieldsets."""
    found = []
    for title, rows in PARTS:
        filled = [[field for column, field in row.items() if getattr(job, column) not in (None, "")] for row in rows]
        if any(filled):
            found.append((title, {"fields": [tuple(row) for row in filled if row]}))
    return found


@dataclass(frozen=True, slots=True)
class PastAttempt:
    """One attempt as the page shows it."""

    number: int
    ending: str
    error_class: str
    message: str
    traceback: str
    owner: str
    took: str
    ended_at: datetime
    when: Any


def history(job: Job) -> tuple[list[PastAttempt], bool]:
    """Read the latest attempts that did not succeed, newest first, and whether there are more."""
    rows = Attempt.objects.using(conf.get("DATABASE")).filter(job_id=job.pk).order_by("-fence")
    found = list(rows[: ATTEMPTS_SHOWN + 1])
    return list(_past(found[:ATTEMPTS_SHOWN], job)), len(found) > ATTEMPTS_SHOWN


def _past(rows: list[Attempt], job: Job) -> Iterator[PastAttempt]:
    secrets = tuple(secret_values(job.payload))
    for row in rows:
        yield PastAttempt(
            number=row.attempt,
            ending=row.get_ending_display(),
            error_class=row.error_class,
            message=redact_text(row.message, secrets),
            traceback=redact_text(row.traceback, secrets),
            owner=row.owner,
            took=display.duration(row.duration),
            ended_at=row.ended_at,
            when=display.in_full(row.ended_at),
        )
