"""Workers as their pages show them, with their jobs and warnings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from jobqueue import conf
from jobqueue.admin import display
from jobqueue.admin.base import address, counted
from jobqueue.admin.job.progress import PERCENT, bar, percent
from jobqueue.admin.links import Links
from jobqueue.admin.search.results import CAP
from jobqueue.backends.sql.filters import in_status
from jobqueue.models import Worker
from jobqueue.models.worker import STATE_LABELS
from jobqueue.records import Filter, WorkerRequest, WorkerState
from jobqueue.records.worker import is_recent
from jobqueue.states import JobStatus
from jobqueue.version import __version__

SHOWN = 200
NAMES_SHOWN = 5

_STATES = dict(STATE_LABELS)
_ASKED: dict[str, Any] = {
    WorkerRequest.QUIET.value: _("asked to take no more jobs"),
    WorkerRequest.STOP.value: _("asked to stop"),
}
_COLUMNS = ("id", "type", "queue", "started_at", "lease_until", "attempts", "max_retries", "cancel_requested_at")


class Holding(NamedTuple):
    """How many running jobs a worker holds, and when the last of its leases ends."""

    jobs: int = 0
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """One worker as a page shows it."""

    name: str
    owner: str
    address: str
    state: Any
    sign: str
    tone: str
    seen: SafeString
    up: SafeString
    slots: str
    host: str
    pid: int
    version: str
    queues: str
    types: str
    alive: bool
    #: What it was asked and has not done yet.
    asked: Any
    #: The verbs that an operator can use now, by name.
    verbs: tuple[str, ...]


def newest() -> tuple[list[Worker], bool]:
    """Read the workers with the latest heartbeats, and whether there are more. A crash loop leaves many rows."""
    rows = list(Worker.objects.using(conf.get("DATABASE")).order_by("-seen_at", "name", "owner")[: SHOWN + 1])
    return rows[:SHOWN], len(rows) > SHOWN


def shown(of: admin.ModelAdmin[Any], worker: Worker, held: Holding, now: datetime) -> WorkerRow:
    """Return the row that the admin shows for a worker.

    Its busy slots are those of the jobs that it holds now. Its last heartbeat may be older than they are.
    """
    alive = is_recent(worker.seen_at, now)
    running = worker.state == WorkerState.RUNNING.value
    return WorkerRow(
        name=worker.name,
        owner=worker.owner,
        address=address(of, "change", quote(worker.owner)) if worker.owner else address(of, "changelist"),
        state=_STATES.get(worker.state, worker.state) if alive else gettext("silent"),
        sign="✕" if not alive else "▶" if running else "■",
        tone="jq-trouble" if not alive else "jq-completed" if running else "jq-attention",
        seen=display.near(worker.seen_at, display.ago(worker.seen_at)),
        up=display.near(worker.started_at, display.length(display.elapsed(worker.started_at, worker.seen_at))),
        slots=f"{held.jobs}/{worker.slots}",
        host=worker.host,
        pid=worker.pid,
        version=worker.version,
        queues=served(worker.queues),
        types=few(worker.types or ()),
        alive=alive,
        asked=_ASKED.get(worker.asked or "", "") if alive and not _has_obeyed(worker) else "",
        verbs=_verbs(worker) if alive else (),
    )


def _has_obeyed(worker: Worker) -> bool:
    states = {WorkerRequest.QUIET.value: WorkerState.QUIET.value, WorkerRequest.STOP.value: WorkerState.STOPPING.value}
    return states.get(worker.asked or "") in (None, worker.state)


def _verbs(worker: Worker) -> tuple[str, ...]:
    """List what an operator can ask of a live worker. One that stops can't be called back."""
    if worker.state == WorkerState.STOPPING.value:
        return ()
    return (
        ("resume", "stop") if worker.asked in _ASKED or worker.state == WorkerState.QUIET.value else ("quiet", "stop")
    )


def served(queues: object) -> str:
    """List the queues that a worker serves; ``None`` is all."""
    return gettext("all") if queues is None else ", ".join(texts(queues))


def few(given: object) -> str:
    """List some names, and how many more there are."""
    names = texts(given)
    some = ", ".join(names[:NAMES_SHOWN])
    more = len(names) - NAMES_SHOWN
    if more <= 0:
        return some
    return ngettext("%(some)s and %(count)d more", "%(some)s and %(count)d more", more) % {"some": some, "count": more}


# Their jobs


def holdings() -> dict[str, Holding]:
    """Read which workers hold running jobs. With very many jobs, only those whose leases end first are read."""
    rows = in_status(conf.get("DATABASE"), JobStatus.IN_PROGRESS).order_by("lease_until")
    found: dict[str, Holding] = {}
    for owner, until in rows.values_list("lease_owner", "lease_until")[:CAP]:
        before = found.get(owner or "", Holding())
        moments = [one for one in (before.until, until) if one]
        found[owner or ""] = Holding(before.jobs + 1, max(moments, default=None))
    return found


def runs(of: admin.ModelAdmin[Any], owner: str, now: datetime) -> tuple[list[dict[str, Any]], bool]:
    """Read the jobs of a worker, the longest-running first, and whether there are more."""
    rows = in_status(conf.get("DATABASE"), JobStatus.IN_PROGRESS).filter(lease_owner=owner).order_by("started_at", "pk")
    found = list(rows.annotate(percent=PERCENT).values(*_COLUMNS, "percent")[: SHOWN + 1])
    return [_run(of, row, now) for row in found[:SHOWN]], len(found) > SHOWN


def _run(of: admin.ModelAdmin[Any], row: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    since, until, links = row["started_at"], row["lease_until"], Links(of.admin_site.name)
    return {
        "id": row["id"],
        "type": row["type"],
        "queue": row["queue"],
        "address": reverse("admin:jobqueue_job_change", args=[quote(row["id"])], current_app=of.admin_site.name),
        "type_address": links.jobs(Filter(types=frozenset({row["type"]}))),
        "queue_address": links.jobs(Filter(queues=frozenset({row["queue"]}))),
        "since": since and display.near(since, display.length(display.elapsed(since, now))),
        "progress": bar(percent(row["percent"])) or "",
        "attempt": f"{row['attempts']}/{row['max_retries']}",
        "asked_to_stop": row["cancel_requested_at"] is not None,
        "lease": until and display.near(until, display.ago(until)),
    }


# Warnings


def notices(workers: Iterable[Worker], held: Mapping[str, Holding], now: datetime, *, all_known: bool) -> list[str]:
    """List warnings about the workers: none is up, versions differ, or some are silent."""
    workers = list(workers)
    alive = [one for one in workers if is_recent(one.seen_at, now)]
    found = [] if alive else [gettext("No worker is up: start one with manage.py runworker.")]
    found += _versions(alive)
    found += [silence(one, held.get(one.owner, Holding()), now) for one in workers if one not in alive]
    strangers = sum(one.jobs for owner, one in held.items() if owner not in {worker.owner for worker in workers})
    if strangers and all_known:
        words = ngettext(
            "%(count)s running job is held by a worker that is not listed. The job is recovered when its lease ends.",
            "%(count)s running jobs are held by workers that are not listed. The jobs are recovered when their leases "
            "end.",
            strangers,
        )
        found.append(words % {"count": counted(strangers)})
    return found


def _versions(alive: Iterable[Worker]) -> list[str]:
    versions = Counter(one.version for one in alive)
    if len(versions) > 1:
        told = ", ".join(f"{version} ({count})" for version, count in sorted(versions.items()))
        words = gettext("The workers run different versions: %(versions)s. Restart the outdated ones.")
        return [words % {"versions": told}]
    if versions and __version__ not in versions:
        words = gettext("The workers run version %(theirs)s, but the admin runs version %(ours)s.")
        return [words % {"theirs": next(iter(versions)), "ours": __version__}]
    return []


def silence(worker: Worker, held: Holding, now: datetime) -> str:
    """Return how long a worker has been silent, and what that means for its jobs."""
    words = gettext("%(name)s has been silent for %(length)s: it died, or can't reach the database.")
    told = words % {"name": worker.name, "length": display.length(now - worker.seen_at)}
    if not held.jobs:
        nothing = gettext("It holds no jobs.")
        return f"{told} {nothing}"
    if held.until is None or held.until <= now:
        after = ngettext(
            "The lease of its %(count)s job has ended. A live worker will recover the job.",
            "The leases of its %(count)s jobs have ended. A live worker will recover the jobs.",
            held.jobs,
        )
        return f"{told} {after % {'count': counted(held.jobs)}}"
    after = ngettext(
        "The lease of its %(count)s job ends %(when)s, at %(moment)s. After that, a live worker recovers the job.",
        "The leases of its %(count)s jobs end %(when)s at the latest, at %(moment)s. After that, live workers recover "
        "the jobs.",
        held.jobs,
    )
    about = {"count": counted(held.jobs), "when": display.ago(held.until), "moment": display.exactly(held.until)}
    return f"{told} {after % about}"


def texts(value: object) -> list[str]:
    """Read a list of texts. Another program may have written something else."""
    return (
        [str(one).encode(errors="backslashreplace").decode() for one in value]
        if isinstance(value, (list, tuple))
        else []
    )
