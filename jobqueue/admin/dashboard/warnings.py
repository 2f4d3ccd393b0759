"""What needs attention: the findings of ``observe.health`` in words, each with the page where it can be acted on."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import NamedTuple

from django.utils.translation import gettext, ngettext

from jobqueue.admin import display
from jobqueue.admin.base import counted
from jobqueue.observe.health import Cause, Finding, Level, Place, Reading, findings
from jobqueue.states import JobStatus

#: Says where the list of an entry is that shows what is named; empty where the site has no such entry.
Address = Callable[..., str]


class Warned(NamedTuple):
    """One sentence, and the way to where it can be acted on."""

    text: str
    address: str
    link: str
    is_grave: bool = False


def warnings(seen: Reading, address: Address) -> list[Warned]:
    """Return what is not as it should be, the worst first."""
    return [
        Warned(_text(one, seen), _where(one, address), _link(one.place), one.level > Level.NOTICE)
        for one in findings(seen)
    ]


def _text(one: Finding, seen: Reading) -> str:
    match one.cause:
        case Cause.RELAY_LOST | Cause.RELAY_IDLE:
            return _not_relayed(one, seen)
        case Cause.NO_WORKER:
            text = ngettext(
                "%(count)s job waits, and no worker is up. Start one with manage.py runworker.",
                "%(count)s jobs wait, and no worker is up. Start one with manage.py runworker.",
                one.waiting,
            )
            return text % {"count": _count(one)}
        case Cause.JOB_LEFT_OUT:
            text = gettext("Job %(id)s can neither be run nor ended, and worker %(worker)s leaves it out: %(reason)s")
            said = {"id": one.job, "worker": one.worker, "reason": one.reason}
            return text % {name: display.clean(value) for name, value in said.items()}
        case Cause.TYPE_NOT_SERVED | Cause.WORKERS_STOPPING:
            text = gettext("No live worker takes jobs of type %(type)s: %(count)s wait.")
            return text % {"type": one.types[0], "count": _count(one)}
        case Cause.QUEUE_NOT_SERVED:
            text = gettext("No live worker takes jobs of type %(type)s from the queue %(queue)s: %(count)s wait.")
            return text % {"type": one.types[0], "queue": one.queues[0], "count": _count(one)}
        case Cause.PAUSED:
            return _paused(one, seen)
        case Cause.OVERDUE:
            text = gettext("A job of type %(type)s in the queue %(queue)s has been due for %(length)s.")
            return text % {"type": one.types[0], "queue": one.queues[0], "length": _length(one, seen)}
        case Cause.QUEUE_FULL | Cause.TYPE_UNKNOWN:
            raise LookupError(f"{one.cause} is judged by what the dashboard does not read")


def _not_relayed(one: Finding, seen: Reading) -> str:
    if one.cause is Cause.RELAY_LOST:
        text = ngettext(
            "The shared database has been out of reach for %(length)s: %(count)s job waits to be relayed.",
            "The shared database has been out of reach for %(length)s: %(count)s jobs wait to be relayed.",
            one.waiting,
        )
    else:
        text = ngettext(
            "%(count)s job has waited for %(length)s to be relayed: is a worker up that relays it?",
            "%(count)s jobs wait to be relayed, the oldest for %(length)s: is a worker up that relays them?",
            one.waiting,
        )
    return text % {"count": _count(one), "length": _length(one, seen)}


def _paused(one: Finding, seen: Reading) -> str:
    since = display.exactly(one.since) if one.since else ""
    text = (
        gettext("The queue %(name)s has been paused for %(length)s, since %(since)s")
        if one.queues
        else gettext("The job type %(name)s has been paused for %(length)s, since %(since)s")
    )
    told = text % {"name": (one.queues or one.types)[0], "since": since, "length": _length(one, seen)}
    return f"{told}: {display.clean(one.reason)}" if one.reason else f"{told}."


def _count(one: Finding) -> str:
    return counted(one.waiting, one.is_capped)


def _length(one: Finding, seen: Reading) -> str:
    return display.length(max(seen.now - (one.since or seen.now), timedelta(0)))


def _where(one: Finding, address: Address) -> str:
    match one.place:
        case Place.WORKERS:
            return address("worker")
        case Place.QUEUES:
            return address("queue")
        case Place.JOB:
            return address("job", id=one.job)
        case Place.QUEUED_JOBS:
            # One queue alone is named: what concerns several of them is shown in all.
            type_name, queue = (names[0] if len(names) == 1 else "" for names in (one.types, one.queues))
            return address("job", status=JobStatus.QUEUED.value, type=type_name, queue=queue)


def _link(place: Place) -> str:
    labels = {Place.WORKERS: gettext("Workers"), Place.QUEUES: gettext("Queues"), Place.JOB: gettext("Show it")}
    return labels.get(place) or gettext("Show them")
