"""Why a job is not running, on its page: the reasons in words, and the pages where something can be done about them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.utils.formats import number_format
from django.utils.translation import gettext

from jobqueue import conf
from jobqueue.admin import display
from jobqueue.admin.links import Links
from jobqueue.backends import current
from jobqueue.handlers.registry import registry
from jobqueue.models import Job
from jobqueue.observe.reasons import ITS_TURN, Reason, Scene, Wording, reasons
from jobqueue.observe.steering import one_line
from jobqueue.records import JobRecord
from jobqueue.states import ACTIVE, JobStatus

#: Of the jobs that come first; the page asks again every second.
AHEAD_COUNTED = 1_000

WORDING = Wording(display.exactly, display.length, display.ago, lambda count: number_format(count, force_grouping=True))
_LOOKED_AT = (
    *("type", "queue", "priority", "scheduled_at", "attempts", "max_retries", "fence", "created_at", "updated_at"),
    *("lease_owner", "lease_until", "started_at", "completed_at", "cancel_requested_at", "end_reason"),
)
_NEED_A_WORKER = frozenset({"lease_expired", "no_worker", "queue_not_served", "type_not_served", "workers_stopping"})


@dataclass(frozen=True, slots=True)
class Told:
    """One reason as the page shows it, with a way to do something about it."""

    text: str
    needs_you: bool
    address: str
    label: str


def why(job: Job, now: datetime, links: Links) -> list[Told]:
    """Say why, the reason that weighs most first."""
    scene = _scene(job, now)
    found = reasons(scene, WORDING)
    if found[0].code in ITS_TURN:  # else nobody needs to count
        ahead = current().ahead_of(scene.job, AHEAD_COUNTED)
        found = reasons(replace(scene, ahead=ahead), WORDING)
    return [_told(one, job, links) for one in found]


def _scene(job: Job, now: datetime) -> Scene:
    backend, status = current(), JobStatus(job.status)
    return Scene(
        now=now,
        job=_record(job),
        pauses=backend.pauses() if status is JobStatus.QUEUED else (),
        workers=backend.workers() if status in ACTIVE else (),
        known_types=registry.names,
        relays_to=conf.get("RELAY_TO"),
        ahead=0,
        cap=AHEAD_COUNTED,
    )


def _record(job: Job) -> JobRecord:
    """Make a record of what the reasons look at; the error's words are shown by the page itself."""
    values: dict[str, Any] = {name: getattr(job, name) for name in _LOOKED_AT}
    error = None if job.error is None else ""
    return JobRecord(id=job.pk, status=JobStatus(job.status), payload=None, payload_version=1, error=error, **values)


def _told(one: Reason, job: Job, links: Links) -> Told:
    address, label = "", ""
    if one.pause is not None:
        address, label = links.queues(), gettext("Queues")
    elif one.code in _NEED_A_WORKER:
        address, label = links.workers(), gettext("Workers")
    elif one.code == "running":
        address, label = links.worker(job.lease_owner or ""), gettext("Its worker")
    return Told(one_line(one.text), one.needs_you, address, label)
