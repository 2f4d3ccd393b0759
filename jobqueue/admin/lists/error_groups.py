"""Dead letters grouped by error, as the pages show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.db.models import TextField
from django.db.models.functions import Cast
from django.http import QueryDict
from django.utils.formats import number_format
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from jobqueue import conf, foreign_json
from jobqueue.admin import display
from jobqueue.admin.base import address, counted
from jobqueue.admin.dashboard.charts import sparkline
from jobqueue.admin.search.query import spelled
from jobqueue.backends import current
from jobqueue.backends.sql.filters import matching
from jobqueue.models import Attempt, Job
from jobqueue.models.attempt import ENDING_LABELS
from jobqueue.models.job import STATUS_LABELS
from jobqueue.policy.fingerprint import Grouping
from jobqueue.policy.redaction import redact_text, secret_values
from jobqueue.records import HOURS, LONGEST_SOUGHT, Caps, ErrorGroup, ErrorShare, Filter, GroupFilter, GroupOrder
from jobqueue.states import JobStatus

SHOWN = 100
JOBS_SHOWN = 20
#: How many dead letters are counted exactly: so many take a tenth of a second.
CAPS = Caps(group=150_000, groups=150_000, hour=500, hours=24_000)
#: How many of an hour are counted for the page of one group, which has room for more of the time.
HOUR_OF_ONE = 2_500
SHARES_OF = 1_000
SHARES_SHOWN = 5

ORDER_LABELS = {
    GroupOrder.LATEST: _("Last seen"),
    GroupOrder.NEWEST: _("First seen"),
    GroupOrder.LARGEST: _("Number of jobs"),
}

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
    #: What happened after the last retry, and the last release that had the error for the first time.
    news: str
    release: str
    retry_address: str


def wanted(fingerprint: str) -> Filter:
    """Return the filter for the jobs of a group."""
    return Filter(statuses=frozenset({JobStatus.DEAD_LETTER}), fingerprint=fingerprint)


def asked(query: QueryDict) -> GroupFilter:
    """Read which groups a URL asks for. An unknown order is the default."""
    order = query.get("order", "")
    text = query.get("text", "").replace("\0", "")[:LONGEST_SOUGHT]
    return GroupFilter(query.get("of", ""), text, GroupOrder(order) if order in set(GroupOrder) else GroupOrder.LATEST)


def all_shown(of: admin.ModelAdmin[Any], wanted: GroupFilter) -> tuple[list[GroupRow], bool]:
    """Read the groups, and whether there are more."""
    found = current().errors.groups(SHOWN, CAPS, wanted)
    return [shown(of, group) for group in found.groups], found.more


def one(fingerprint: str) -> ErrorGroup | None:
    """Read one group. Postgres rejects texts with a NUL."""
    caps = CAPS._replace(hour=HOUR_OF_ONE, hours=HOURS * HOUR_OF_ONE)
    return None if "\0" in fingerprint else current().errors.group(fingerprint, caps)


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
        news=news(group),
        release=group.releases[-1].release if len(group.releases) > 1 else "",
        retry_address=f"{address(of, 'by_error_retry')}?{query}",
    )


def named(group: ErrorGroup) -> str:
    """Name an error by its class, or by how the attempt ended if there was no exception."""
    if not group.fingerprint:
        return gettext("Errors without a fingerprint")
    return group.error_class or str(_ENDINGS.get(group.ending or "", gettext("Unknown error")))


def news(group: ErrorGroup) -> str:
    """Say what happened since the last retry, if there was one."""
    if group.retried_at is None:
        return ""
    when = display.ago(group.retried_at)
    if group.came_back:
        return gettext("Came back after a retry %(when)s") % {"when": when}
    return gettext("Not seen since a retry %(when)s") % {"when": when}


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


@dataclass(frozen=True, slots=True)
class SharesShown:
    """The largest shares of one kind."""

    title: str
    shares: list[tuple[str, str, int]]
    others: int


def shares(fingerprint: str) -> tuple[list[SharesShown], str]:
    """Describe what the jobs of a group have in common, and of which jobs that is true."""
    found = current().errors.shares(fingerprint, SHARES_OF)
    kinds = (
        (gettext("Tenants"), found.tenants),
        (gettext("Queues"), found.queues),
        (gettext("Hosts of workers"), found.hosts),
        (gettext("Releases"), found.releases),
    )
    shown_kinds = [_shares(title, of_kind, found.of) for title, of_kind in kinds if any(one.name for one in of_kind)]
    whole = (
        gettext("Of all jobs with this error.")
        if found.is_all
        else gettext("Of the newest %(count)s jobs with this error.")
    )
    return shown_kinds, whole % {"count": number_format(found.of, force_grouping=True)}


def _shares(title: str, of_kind: Sequence[ErrorShare], of: int) -> SharesShown:
    rows = [
        (one.name or gettext("none"), number_format(one.number, force_grouping=True), round(100 * one.number / of))
        for one in of_kind[:SHARES_SHOWN]
    ]
    return SharesShown(title, rows, len(of_kind) - len(rows))


def grouping(group: ErrorGroup) -> Grouping | None:
    """Return what the group's newest job is grouped by, unless its fingerprint is of an older rule."""
    found = current().errors.groupings([group.newest_id]).get(group.newest_id)
    return found if found and found.fingerprint == group.fingerprint else None


def releases(group: ErrorGroup) -> list[tuple[str, Any]]:
    """List the releases that had the error, each with when that began."""
    return [(one.release, display.near(one.first_at, display.ago(one.first_at))) for one in group.releases]


def state_of(job_id: str) -> tuple[str, str] | None:
    """Return the status of the job that was retried first, and its label. ``None`` if there is no such job."""
    if not job_id or "\0" in job_id:
        return None
    status = Job.objects.using(conf.get("DATABASE")).filter(pk=job_id).values_list("status", flat=True).first()
    return (status, str(dict(STATUS_LABELS).get(status, status))) if status else None
