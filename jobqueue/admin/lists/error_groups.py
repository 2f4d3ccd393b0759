"""Dead letters grouped by error, as the pages show them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.db.models import TextField
from django.db.models.functions import Cast
from django.utils.translation import gettext, ngettext

from jobqueue import conf, foreign_json
from jobqueue.admin import display
from jobqueue.admin.base import address, counted
from jobqueue.admin.dashboard.charts import sparkline
from jobqueue.admin.search.query import spelled
from jobqueue.admin.search.results import CAP
from jobqueue.backends import current
from jobqueue.backends.sql.filters import matching
from jobqueue.models import Attempt, Job
from jobqueue.models.attempt import ENDING_LABELS
from jobqueue.policy.redaction import redact_text, secret_values
from jobqueue.records import Caps, ErrorGroup, Filter
from jobqueue.states import JobStatus

SHOWN = 100
JOBS_SHOWN = 20
#: Until a table is vacuumed, Postgres reads the row of each entry that it counts: a million take a second.
CAPS = Caps(group=CAP, groups=40_000, hour=500, hours=24_000)

_ENDINGS = dict(ENDING_LABELS)
_COLUMNS = ("id", "type", "attempts", "max_retries", "queue", "tenant", "completed_at")


@dataclass(frozen=True, slots=True)
class GroupRow:
    """One group as a page shows it."""

    error: str
    message: str
    type: str
    count: str
    first: Any
    last: Any
    chart: Any
    address: str
    list_address: str
    nameless: bool


def wanted(fingerprint: str) -> Filter:
    """Return the filter for the jobs of a group."""
    return Filter(statuses=frozenset({JobStatus.DEAD_LETTER}), fingerprint=fingerprint)


def all_shown(of: admin.ModelAdmin[Any]) -> tuple[list[GroupRow], bool]:
    """Read the groups, the most recent failures first, and whether there are more."""
    found = current().errors.groups(SHOWN, CAPS)
    return [shown(of, group) for group in found.groups], found.more


def one(fingerprint: str) -> ErrorGroup | None:
    """Read one group. Postgres rejects texts with a NUL."""
    return None if "\0" in fingerprint else current().errors.group(fingerprint, CAPS)


def shown(of: admin.ModelAdmin[Any], group: ErrorGroup) -> GroupRow:
    """Format a group for a page."""
    query = urlencode({"fingerprint": group.fingerprint})
    listed = urlencode({"q": spelled(Filter(fingerprint=group.fingerprint))})
    return GroupRow(
        error=named(group),
        message=display.first_line(group.error),
        type=group.type,
        count=counted(group.count, group.capped),
        first=group.first_at and display.near(group.first_at, display.ago(group.first_at)),
        last=group.last_at and display.near(group.last_at, display.ago(group.last_at)),
        chart=sparkline(group.hourly, lately(group)),
        address=f"{address(of, 'by_error')}?{query}",
        list_address=f"{address(of, 'all')}?{listed}",
        nameless=not group.fingerprint,
    )


def named(group: ErrorGroup) -> str:
    """Name an error by its class, or by how the attempt ended if there was no exception."""
    if not group.fingerprint:
        return gettext("Errors without a fingerprint")
    return group.error_class or str(_ENDINGS.get(group.ending or "", gettext("Unknown error")))


def lately(group: ErrorGroup) -> str:
    """Describe the chart of the last day."""
    total = sum(group.hourly)
    if not total:
        return gettext("None in the last 24 hours.")
    more = any(hour >= group.hourly_cap for hour in group.hourly)
    words = ngettext(
        "%(count)s in the last 24 hours; most in one hour: %(most)s.",
        "%(count)s in the last 24 hours; most in one hour: %(most)s.",
        total,
    )
    return words % {"count": counted(total, more), "most": counted(max(group.hourly), more)}


@dataclass(frozen=True, slots=True)
class LatestFailure:
    """The latest failure of a group, redacted."""

    message: str
    traceback: str
    worker: str


def latest(group: ErrorGroup) -> LatestFailure:
    """Read the latest failure of a group, without secrets of the job's payload."""
    past = Attempt.objects.using(conf.get("DATABASE")).filter(job_id=group.newest_id).order_by("-fence").first()
    secrets = _secrets(group.newest_id)
    message = past.message if past and past.message else group.error
    return LatestFailure(
        message=redact_text(message, secrets),
        traceback=redact_text(past.traceback, secrets) if past else "",
        worker=past.owner if past else "",
    )


def _secrets(job_id: str) -> tuple[str, ...]:
    """Find the secrets in a job's payload."""
    rows = Job.objects.using(conf.get("DATABASE")).filter(pk=job_id)
    text = rows.values_list(Cast("payload", TextField()), flat=True).first()
    return secret_values(foreign_json.read(text or "null"))


def jobs(of: admin.ModelAdmin[Any], fingerprint: str) -> list[dict[str, Any]]:
    """Read the newest jobs of a group, by the index of dead letters by error."""
    # The first column is the same for all. Without it, Postgres would sort the jobs that have no fingerprint.
    rows = matching(conf.get("DATABASE"), wanted(fingerprint)).order_by("-error_fingerprint", "-completed_at", "-pk")
    return [
        {
            **row,
            "address": address(of, "change", quote(row["id"])),
            "when": row["completed_at"] and display.near(row["completed_at"], display.ago(row["completed_at"])),
        }
        for row in rows.values(*_COLUMNS)[:JOBS_SHOWN]
    ]
