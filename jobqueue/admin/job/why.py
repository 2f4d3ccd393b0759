"""The reasons why a job is not running, with links to pages that help."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.utils.translation import gettext

from jobqueue import conf
from jobqueue.admin import display
from jobqueue.admin.links import Links
from jobqueue.backends import current
from jobqueue.handlers.registry import registry
from jobqueue.models import Job
from jobqueue.observe import turns
from jobqueue.observe.lanes import hold_of
from jobqueue.observe.limits import used_up
from jobqueue.observe.reasons import ITS_TURN, Reason, Scene, reasons
from jobqueue.observe.terminal_safe import one_line
from jobqueue.records import JobRecord
from jobqueue.states import ACTIVE, JobStatus

#: How many jobs ahead of this one are counted, since the page asks every second.
AHEAD_COUNTED = 1_000

_LOOKED_AT = (
    *("type", "queue", "priority", "scheduled_at", "attempts", "max_retries", "fence", "created_at", "updated_at"),
    *("lease_owner", "lease_until", "started_at", "completed_at", "cancel_requested_at", "end_reason"),
    *("concurrency_key", "fair_key", "parallel", "lane", "lane_position"),
)
_NEED_A_WORKER = frozenset({"lease_expired", "no_worker", "queue_not_served", "type_not_served", "workers_stopping"})


@dataclass(frozen=True, slots=True)
class LinkedReason:
    """One reason as the page shows it, with a link to a page that helps."""

    text: str
    needs_you: bool
    address: str
    label: str


def why(job: Job, now: datetime, links: Links) -> list[LinkedReason]:
    """List the reasons, the most important first."""
    scene = _scene(job, now)
    found = reasons(scene, display.WORDING)
    if found[0].code in ITS_TURN:  # only these need the count
        ahead = current().jobs.ahead_of(scene.job, AHEAD_COUNTED)
        found = reasons(replace(scene, ahead=ahead), display.WORDING)
    return [_told(one, job, links) for one in found]


def _scene(job: Job, now: datetime) -> Scene:
    backend, status = current(), JobStatus(job.status)
    record = _record(job)
    return Scene(
        now=now,
        job=record,
        pauses=backend.operator.pauses() if status is JobStatus.QUEUED else (),
        workers=backend.workers.all() if status in ACTIVE else (),
        known_types=registry.names,
        relays_to=conf.get("RELAY_TO"),
        ahead=0,
        cap=AHEAD_COUNTED,
        lane=hold_of(backend, record) if status is JobStatus.QUEUED else None,
        used_up=used_up(backend, record) if status is JobStatus.QUEUED else (),
        turn=turns.place_of(backend, record),
    )


def _record(job: Job) -> JobRecord:
    """Make a record with what the reasons need. The page shows the error itself."""
    values: dict[str, Any] = {name: getattr(job, name) for name in _LOOKED_AT}
    error = None if job.error is None else ""
    return JobRecord(id=job.pk, status=JobStatus(job.status), payload=None, payload_version=1, error=error, **values)


def _told(one: Reason, job: Job, links: Links) -> LinkedReason:
    address, label = "", ""
    if one.pause is not None:
        address, label = links.queues(), gettext("Queues")
    elif one.code in _NEED_A_WORKER:
        address, label = links.workers(), gettext("Workers")
    elif one.code == "running":
        address, label = links.worker(job.lease_owner or ""), gettext("Its worker")
    return LinkedReason(one_line(one.text), one.needs_you, address, label)
