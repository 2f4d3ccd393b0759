"""Queues and job types as their page shows them: how full, how old, how fast, paused or not, and who serves them."""

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

from jobqueue.admin import display
from jobqueue.admin.base import address, counted
from jobqueue.admin.search.query import spelled
from jobqueue.backends import current
from jobqueue.handlers.registry import registry
from jobqueue.models.pause import SCOPE_LABELS
from jobqueue.observe.metrics import WINDOWS, depths, figures
from jobqueue.records import COUNTED_TO, MOST_GROUPS, Depth, Filter, PauseRecord, Scope, Share, WorkerRecord
from jobqueue.states import JobStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One queue, or one type in one queue, as the page shows it."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was read at one moment."""

    now: datetime
    depths: Sequence[Depth]
    pauses: Sequence[PauseRecord]
    workers: Sequence[WorkerRecord]
    by_queue: dict[str, Share]
    by_type: dict[str, Share]

    @property
    def alive(self) -> list[WorkerRecord]:
        """The workers heard of lately."""
        return [one for one in self.workers if one.is_alive(self.now)]

    @property
    def in_part(self) -> bool:
        """Return whether there are more queues and types than were looked at."""
        return len(self.depths) >= MOST_GROUPS

    def pause_of(self, scope: Scope, name: str) -> PauseRecord | None:
        """The pause of a queue or a type, if it has one."""
        return next((one for one in self.pauses if (one.scope, one.name) == (scope, name)), None)


def look() -> Seen:
    """Read everything; with as many questions however much there is."""
    backend, hour = current(), figures(WINDOWS["hour"])
    return Seen(
        now=backend.now(),
        depths=depths(),
        pauses=backend.operator.pauses(),
        workers=backend.workers.all(),
        by_queue={share.name: share for share in hour.by_queue},
        by_type={share.name: share for share in hour.by_type},
    )


@dataclass(frozen=True, slots=True)
class Sum:
    """What waits and runs in several groups together."""

    depths: Sequence[Depth]

    @property
    def queued(self) -> str:
        """How many wait."""
        return counted(sum(one.queued for one in self.depths), any(one.capped for one in self.depths))

    @property
    def due(self) -> str:
        """How many of them could run now."""
        # Counted as far as what waits was, so that there are more if all that was counted is due.
        more = any(one.capped and one.due >= one.queued for one in self.depths)
        return counted(sum(one.due for one in self.depths), more)

    @property
    def in_progress(self) -> str:
        """How many run."""
        running = sum(one.in_progress for one in self.depths)
        return counted(running, running >= COUNTED_TO)

    def oldest(self, now: datetime) -> Any:
        """How long the oldest that could run has waited."""
        moments = [one.oldest_due_at for one in self.depths if one.oldest_due_at]
        if not moments:
            return ""
        return display.near(min(moments), display.length(max(now - min(moments), timedelta(0))))


def queues(of: admin.ModelAdmin[Any], seen: Seen) -> list[Row]:
    """Show each queue that has jobs, is paused, is served by name, or is what a type of this release goes to."""
    paused = {one.name for one in seen.pauses if one.scope is Scope.QUEUE}
    served = {name for worker in seen.alive for name in worker.queues or ()}
    named = {one.options.queue for one in registry}
    names = {one.queue for one in seen.depths} | paused | served | named
    return [
        _row(of, seen, Scope.QUEUE, name, [one for one in seen.depths if one.queue == name]) for name in sorted(names)
    ]


def types(of: admin.ModelAdmin[Any], seen: Seen) -> list[Row]:
    """Show each type in each queue that has jobs of it; and those that have none, if they are paused or known."""
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
    )


def ended(share: Share) -> str:
    """Return how many were completed, and which part of what came to an end that is."""
    about = {"count": counted(share.completed)}
    if share.success is None:
        return ngettext("%(count)s completed", "%(count)s completed", share.completed) % about
    about["percent"] = number_format(f"{display.percent(share.success):g}")
    text = ngettext("%(count)s completed, %(percent)s %%", "%(count)s completed, %(percent)s %%", share.completed)
    return text % about


def _troubles(seen: Seen, groups: Sequence[Depth]) -> Iterator[str]:
    """Say that jobs of a type wait for a worker there is not; each step asks fewer workers than the one before."""
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
            yield gettext("The workers that could run it are stopping.")
        if group.type not in registry.names:
            yield gettext("This release has no handler for it.")


def _unserved(seen: Seen, queue: str, groups: Sequence[Depth]) -> list[str]:
    """Say for a queue what is true of all of it, and which of its types nobody runs."""
    waiting = [one for one in groups if one.queued]
    if waiting and not seen.alive:
        return [gettext("No worker is up.")]
    serving = [one for one in seen.alive if one.serves(queue)]
    if waiting and not serving:
        return [gettext("No live worker serves this queue.")]
    return [
        gettext("No live worker for this type: %(type)s.") % {"type": one.type}
        for one in waiting
        if not any(worker.serves(queue, one.type) for worker in serving)
    ]


# Where to


def listed(of: admin.ModelAdmin[Any], status: JobStatus, queue: str, types: frozenset[str] = frozenset()) -> str:
    """Return where the jobs of a queue are listed that have a status."""
    wanted = Filter(statuses=frozenset({status}), queues=frozenset({queue}) if queue else frozenset(), types=types)
    there = reverse("admin:jobqueue_job_changelist", current_app=of.admin_site.name)
    return f"{there}?{urlencode({'q': spelled(wanted)})}"


def steering(of: admin.ModelAdmin[Any], verb: str, scope: Scope, name: str) -> str:
    """Return where a queue or a type is paused or resumed."""
    return f"{address(of, verb)}?{urlencode({'scope': scope.value, 'name': name})}"
