"""The rows of the queues page: the depth, age, speed and pause of queues and job types, and who serves them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.urls import reverse
from django.utils.formats import number_format
from django.utils.translation import gettext, ngettext

from jobqueue import queues as queue_options
from jobqueue.admin import display
from jobqueue.admin.base import address, counted
from jobqueue.admin.search.query import spelled
from jobqueue.backends import current
from jobqueue.handlers.registry import registry
from jobqueue.models.pause import SCOPE_LABELS
from jobqueue.observe.metrics import WINDOWS, depths, figures
from jobqueue.records import COUNTED_TO, MOST_GROUPS, Depth, Filter, PauseRecord, Scope, Share, WorkerRecord
from jobqueue.records.gauge import Gauge
from jobqueue.states import JobStatus

#: How many types a warning names, so that it stays one line.
NAMES_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A queue, or a type in a queue, as the page shows it."""

    scope: Any
    name: str
    queue: str
    waiting: str
    due: str
    oldest: Any
    running: str
    ended: str
    troubles: Sequence[str]
    paused: str
    reason: str
    waiting_address: str
    running_address: str
    dead_address: str
    steer_address: str
    address: str
    queue_address: str
    capacity: str = ""
    shed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The values that were read at one moment."""

    now: datetime
    depths: Sequence[Depth]
    pauses: Sequence[PauseRecord]
    workers: Sequence[WorkerRecord]
    by_queue: dict[str, Share]
    by_type: dict[str, Share]
    gauges: dict[str, Gauge]

    @property
    def alive(self) -> list[WorkerRecord]:
        """Return the workers that have reported recently."""
        return [one for one in self.workers if one.is_alive(self.now)]

    @property
    def in_part(self) -> bool:
        """Return whether there are more queues and types than were counted."""
        return len(self.depths) >= MOST_GROUPS

    def pause_of(self, scope: Scope, name: str) -> PauseRecord | None:
        """Return the pause of a queue or a type, if it has one."""
        return next((one for one in self.pauses if (one.scope, one.name) == (scope, name)), None)


def look() -> Seen:
    """Read everything. The number of queries doesn't depend on the number of rows."""
    backend, hour = current(), figures(WINDOWS["hour"])
    return Seen(
        now=backend.now(),
        depths=depths(),
        pauses=backend.operator.pauses(),
        workers=backend.workers.all(),
        by_queue={share.name: share for share in hour.by_queue},
        by_type={share.name: share for share in hour.by_type},
        gauges={one.queue: one for one in backend.gauges.all()},
    )


@dataclass(frozen=True, slots=True)
class Sum:
    """The sum of what waits and runs in some queues and types."""

    depths: Sequence[Depth]

    @property
    def queued(self) -> str:
        """Return how many jobs wait."""
        return counted(sum(one.queued for one in self.depths), any(one.capped for one in self.depths))

    @property
    def due(self) -> str:
        """Return how many jobs are due."""
        # Due jobs are counted as far as waiting ones, so there may be more if all that were counted are due.
        more = any(one.capped and one.due >= one.queued for one in self.depths)
        return counted(sum(one.due for one in self.depths), more)

    @property
    def in_progress(self) -> str:
        """Return how many jobs run."""
        running = sum(one.in_progress for one in self.depths)
        return counted(running, running >= COUNTED_TO)

    def oldest(self, now: datetime) -> Any:
        """Return how long the oldest due job has waited."""
        moments = [one.oldest_due_at for one in self.depths if one.oldest_due_at]
        if not moments:
            return ""
        return display.near(min(moments), display.length(max(now - min(moments), timedelta(0))))


def queues(of: admin.ModelAdmin[Any], seen: Seen) -> list[Row]:
    """List each queue that has jobs or a pause, or that a worker or a handler names."""
    paused = {one.name for one in seen.pauses if one.scope is Scope.QUEUE}
    served = {name for worker in seen.alive for name in worker.queues or ()}
    named = {one.options.queue for one in registry}
    names = {one.queue for one in seen.depths} | paused | served | named
    return [queue(of, seen, name) for name in sorted(names)]


def queue(of: admin.ModelAdmin[Any], seen: Seen, name: str) -> Row:
    """Show one queue, whether or not there is anything in it."""
    return _row(of, seen, Scope.QUEUE, name, [one for one in seen.depths if one.queue == name])


def types(of: admin.ModelAdmin[Any], seen: Seen) -> list[Row]:
    """List each type with jobs, once for each of its queues, and the other types that are paused or have a handler."""
    found = [_row(of, seen, Scope.TYPE, one.type, [one]) for one in seen.depths]
    busy = {one.type for one in seen.depths}
    idle = {one.name: one.options.queue for one in registry}
    idle |= {one.name: idle.get(one.name, "") for one in seen.pauses if one.scope is Scope.TYPE}
    found += [_row(of, seen, Scope.TYPE, name, [], queue=queue) for name, queue in idle.items() if name not in busy]
    return sorted(found, key=lambda row: (row.name, row.queue))


def _row(
    of: admin.ModelAdmin[Any], seen: Seen, scope: Scope, name: str, groups: Sequence[Depth], queue: str = ""
) -> Row:
    together, pause = Sum(groups), seen.pause_of(scope, name)
    share = (seen.by_queue if scope is Scope.QUEUE else seen.by_type).get(name)
    queue = name if scope is Scope.QUEUE else groups[0].queue if groups else queue
    kind = frozenset() if scope is Scope.QUEUE else frozenset({name})
    return Row(
        scope=dict(SCOPE_LABELS)[scope.value],
        name=name,
        queue=queue,
        waiting=together.queued,
        due=together.due,
        oldest=together.oldest(seen.now),
        running=together.in_progress,
        ended=ended(share) if share else "",
        troubles=list(_troubles(seen, groups)) if scope is Scope.TYPE else _unserved(seen, name, groups),
        paused=display.ago(pause.paused_at) if pause else "",
        reason=display.clean(pause.reason) if pause else "",
        waiting_address=listed(of, JobStatus.QUEUED, queue, kind),
        running_address=listed(of, JobStatus.IN_PROGRESS, queue, kind),
        dead_address=listed(of, JobStatus.DEAD_LETTER, queue, kind),
        steer_address=steering(of, "resume" if pause else "pause", scope, name),
        address=one_queue(of, name) if scope is Scope.QUEUE else listed(of, None, queue, kind),
        queue_address=one_queue(of, queue) if queue else "",
        **(_limits(seen, name) if scope is Scope.QUEUE else {}),
    )


def _limits(seen: Seen, queue: str) -> dict[str, str]:
    """Return the capacity of a queue, how full it is, and how many jobs it has shed, or nothing if it has none."""
    options, gauge = queue_options.options_of(queue), seen.gauges.get(queue, Gauge(queue))
    about = {"number": counted(gauge.shed), "ago": display.ago(gauge.shed_at) if gauge.shed_at else ""}
    shed = ngettext("%(number)s job shed, %(ago)s", "%(number)s jobs shed, the last %(ago)s", gauge.shed) % about
    return {
        "capacity": "" if options.capacity is None else _share(seen, queue, options.capacity),
        "shed": shed if gauge.shed else "",
    }


def _share(seen: Seen, queue: str, capacity: int) -> str:
    depth = sum(one.queued for one in seen.depths if one.queue == queue)
    about = {"capacity": counted(capacity), "percent": number_format(f"{display.percent(depth / capacity):g}")}
    return gettext("%(percent)s %% of %(capacity)s") % about


def ended(share: Share) -> str:
    """Return how many jobs were completed, and their share in those that ended."""
    about = {"count": counted(share.completed)}
    if share.success is None:
        return ngettext("%(count)s completed", "%(count)s completed", share.completed) % about
    about["percent"] = number_format(f"{display.percent(share.success):g}")
    text = ngettext("%(count)s completed, %(percent)s %%", "%(count)s completed, %(percent)s %%", share.completed)
    return text % about


def _troubles(seen: Seen, groups: Sequence[Depth]) -> Iterator[str]:
    """Say why no worker takes jobs of a type. Each step looks at fewer workers than the one before."""
    for group in groups:
        if not group.queued:
            continue
        serving = [one for one in seen.alive if one.serves(group.queue)]
        knowing = [one for one in serving if one.serves(group.queue, group.type)]
        if not seen.alive:
            yield gettext("No worker is up.")
        elif not serving:
            yield gettext("No live worker serves this queue.")
        elif not knowing:
            yield gettext("No live worker for this type.")
        elif not any(one.takes(group.queue, group.type) for one in knowing):
            yield gettext("The workers that could run these jobs are quiet or stopping.")
        if group.type not in registry.names:
            yield gettext("This release has no handler for this type.")


def _unserved(seen: Seen, queue: str, groups: Sequence[Depth]) -> list[str]:
    """Say why no worker takes jobs of a queue, or of some of its types, in one line."""
    waiting = [one for one in groups if one.queued]
    if waiting and not seen.alive:
        return [gettext("No worker is up.")]
    serving = [one for one in seen.alive if one.serves(queue)]
    if waiting and not serving:
        return [gettext("No live worker serves this queue.")]
    lonely = [one.type for one in waiting if not any(worker.serves(queue, one.type) for worker in serving)]
    if not lonely:
        return []
    some, more = ", ".join(lonely[:NAMES_SHOWN]), len(lonely) - NAMES_SHOWN
    if more <= 0:
        text = ngettext(
            "No live worker for this type: %(types)s.", "No live worker for these types: %(types)s.", len(lonely)
        )
        return [text % {"types": some}]
    text = gettext("No live worker for %(count)s types: %(types)s and %(more)s more.")
    return [text % {"count": counted(len(lonely)), "types": some, "more": counted(more)}]


# URLs


def listed(of: admin.ModelAdmin[Any], status: JobStatus | None, queue: str, types: frozenset[str] = frozenset()) -> str:
    """Return the URL of the list of a queue's jobs, or of those with a status."""
    statuses = frozenset({status}) if status else frozenset[JobStatus]()
    wanted = Filter(statuses=statuses, queues=frozenset({queue}) if queue else frozenset(), types=types)
    there = reverse("admin:jobqueue_job_changelist", current_app=of.admin_site.name)
    return f"{there}?{urlencode({'q': spelled(wanted)}, errors='replace')}"


def one_queue(of: admin.ModelAdmin[Any], name: str) -> str:
    """Return where the page of a queue is."""
    return f"{address(of, 'one')}?{urlencode({'queue': name}, errors='replace')}"


def steering(of: admin.ModelAdmin[Any], verb: str, scope: Scope, name: str) -> str:
    """Return the URL of the page that pauses or resumes a queue or a type."""
    return f"{address(of, verb)}?{urlencode({'scope': scope.value, 'name': name})}"
