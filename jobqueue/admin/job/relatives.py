"""The parent and the follow-up jobs of a job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from jobqueue import conf
from jobqueue.admin import display
from jobqueue.admin.links import Links
from jobqueue.models import Job
from jobqueue.records import Filter

CHILDREN_SHOWN = 50


@dataclass(frozen=True, slots=True)
class Relative:
    """A related job as the page shows it. It has no badge if it is gone."""

    id: str
    type: str
    badge: Any
    address: str


@dataclass(frozen=True, slots=True)
class Children:
    """The first follow-up jobs, whether there are more, and the link to all."""

    shown: tuple[Relative, ...]
    more: bool
    address: str


def parent_of(job: Job, links: Links) -> Relative | None:
    """Find the job that enqueued this one."""
    if not job.parent_id:
        return None
    row = _jobs().filter(pk=job.parent_id).only("id", "type", "status").first()
    return _relative(row, links) if row else Relative(job.parent_id, "", "", links.job(job.parent_id))


def children_of(job: Job, links: Links) -> Children:
    """Find the follow-up jobs of a job, by the index on the parent."""
    rows = _jobs().filter(parent_id=job.pk).order_by("pk").only("id", "type", "status")[: CHILDREN_SHOWN + 1]
    found = tuple(_relative(row, links) for row in rows)
    return Children(found[:CHILDREN_SHOWN], len(found) > CHILDREN_SHOWN, links.jobs(Filter(parent_id=job.pk)))


def _jobs() -> QuerySet[Job]:
    return Job.objects.using(conf.get("DATABASE"))


def _relative(row: Job, links: Links) -> Relative:
    return Relative(row.pk, row.type, display.badge(row.status, str(row.get_status_display())), links.job(row.pk))
