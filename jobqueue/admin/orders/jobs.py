"""What became of the jobs that an order changed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery

from jobqueue import conf
from jobqueue.admin import display
from jobqueue.admin.base import counted
from jobqueue.admin.links import Links
from jobqueue.models import Job, Order, OrderedJob
from jobqueue.models.job import STATUS_LABELS

#: How many of an order's jobs are looked at, and how many are shown on a page.
LOOKED_AT, SHOWN = 20_000, 50
#: The status of jobs that were deleted.
GONE = "gone"


@dataclass(frozen=True, slots=True)
class ChangedJob:
    """A job of an order as it is now."""

    id: str
    address: str
    type: str
    badge: Any


@dataclass(frozen=True, slots=True)
class JobsNow:
    """The jobs of an order by status, and a page of them. ``looked_at`` is set if not all were looked at."""

    by_status: list[tuple[str, Any, str]]
    shown: list[ChangedJob]
    older: int | None
    looked_at: str


def jobs_now(order: Order, status: str, after: int, links: Links) -> JobsNow:
    """Count the jobs by their current status, and read those of one status, or all, that come after a key."""
    found = _rows(order)
    states = Counter(found.values_list("state", flat=True)[:LOOKED_AT])
    by_status = [(name, label, counted(states[name])) for name, label in STATUS_LABELS if states[name]]
    gone = [(GONE, None, counted(states[None]))] if states[None] else []
    edge = next(iter(found.values_list("pk", flat=True)[LOOKED_AT : LOOKED_AT + 1]), None)
    rows = found.filter(pk__gt=after)
    if status:
        rows = rows.filter(state__isnull=True) if status == GONE else rows.filter(state=status)
        rows = rows if edge is None else rows.filter(pk__lt=edge)
    page = list(rows[: SHOWN + 1])
    shown = [_changed(one, links) for one in page[:SHOWN]]
    return JobsNow(
        by_status + gone,
        shown,
        page[SHOWN - 1].pk if len(page) > SHOWN else None,
        counted(LOOKED_AT) if edge is not None else "",
    )


def _rows(order: Order) -> QuerySet[Any]:
    # A subquery for each row: a planner without statistics would join with the whole table.
    job = Job.objects.using(conf.get("DATABASE")).filter(pk=OuterRef("job_id"))
    rows = OrderedJob.objects.using(conf.get("DATABASE")).filter(order=order.pk).order_by("pk")
    return rows.annotate(state=Subquery(job.values("status")[:1]), kind=Subquery(job.values("type")[:1]))


def _changed(row: Any, links: Links) -> ChangedJob:
    if row.state is None:
        return ChangedJob(row.job_id, "", "", "")
    label = dict(STATUS_LABELS).get(row.state, row.state)
    return ChangedJob(row.job_id, links.job(row.job_id), row.kind, display.badge(row.state, str(label)))
