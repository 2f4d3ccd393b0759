"""What needs attention: the findings of ``observe.health`` in words, each with a link to the page that helps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from django.utils.translation import gettext

from jobqueue.admin import display
from jobqueue.observe.health import Finding, Level, Place, Reading, advice, findings, sentence
from jobqueue.observe.health.finding import WithheldJobs
from jobqueue.states import JobStatus

#: How many problems of one cause are listed.
PARTS_SHOWN = 100

#: Returns the URL of the list of a model, filtered, or an empty string if the site doesn't have it.
Address = Callable[..., str]


class Warned(NamedTuple):
    """One finding: a sentence, what to do, a link, and the problems that it sums up."""

    text: str
    advice: str
    address: str
    link: str
    is_grave: bool = False
    parts: tuple[Warned, ...] = ()
    more: int = 0


def warnings(seen: Reading, address: Address) -> list[Warned]:
    """List what needs attention, the worst first."""
    return [_warned(one, seen.now, address) for one in findings(seen)]


def _warned(one: Finding, now: datetime, address: Address) -> Warned:
    return Warned(
        text=sentence(_clean(one), display.WORDING, now),
        advice=advice(one),
        address=_where(one, address),
        link=_link(one.place),
        is_grave=one.level > Level.NOTICE,
        parts=tuple(_warned(part, now, address) for part in one.parts[:PARTS_SHOWN]),
        more=max(len(one.parts) - PARTS_SHOWN, 0),
    )


def _clean(one: Finding) -> Finding:
    """Redact what other programs and people wrote."""
    return replace(
        one,
        queues=tuple(map(display.clean, one.queues)),
        types=tuple(map(display.clean, one.types)),
        job=display.clean(one.job),
        worker=display.clean(one.worker),
        schedule=display.clean(one.schedule),
        tenant=display.clean(one.tenant),
        reason=display.clean(one.reason),
        limit=_clean_limit(one.limit),
    )


def _clean_limit(one: WithheldJobs | None) -> WithheldJobs | None:
    if one is None:
        return None
    stored = one.stored
    if stored is not None:
        stored = replace(stored, reason=display.clean(stored.reason), author=display.clean(stored.author))
    limit = replace(one.use.limit, name=display.clean(one.use.limit.name), key=display.clean(one.use.limit.key))
    use = replace(one.use, limit=limit, value=display.clean(one.use.value))
    return replace(one, use=use, stored=stored)


def _where(one: Finding, address: Address) -> str:
    # Only a single queue or type narrows the list. Several are shown among all.
    type_name, queue = (names[0] if len(names) == 1 else "" for names in (one.types, one.queues))
    match one.place:
        case Place.WORKERS:
            return address("worker")
        case Place.SCHEDULES:
            return address("schedule")
        case Place.QUEUES:
            return address("queue")
        case Place.DASHBOARD:
            return address("dashboard", type=type_name, queue=queue)
        case Place.JOB:
            return address("job", id=one.job)
        case Place.DEAD_LETTERS:
            return address("deadletter", type=type_name)  # by error, where each can be retried as a whole
        case Place.RUNNING_JOBS:
            return address("job", status=JobStatus.IN_PROGRESS.value, type=type_name, queue=queue)
        case Place.QUEUED_JOBS:
            names = {"type": type_name, "queue": queue, "tenant": one.tenant}
            return address("job", status=JobStatus.QUEUED.value, **names)


def _link(place: Place) -> str:
    labels = {
        Place.WORKERS: gettext("Workers"),
        Place.QUEUES: gettext("Queues"),
        Place.SCHEDULES: gettext("Schedules"),
        Place.DEAD_LETTERS: gettext("Dead letters"),
        Place.JOB: gettext("Show it"),
    }
    return labels.get(place) or gettext("Show them")
