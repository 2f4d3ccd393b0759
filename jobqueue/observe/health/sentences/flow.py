"""Sentences about the flow of jobs."""

from __future__ import annotations

from datetime import datetime

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from jobqueue.observe.health.finding import Cause, Finding
from jobqueue.observe.health.sentences.words import Words, due, several_names, waiting
from jobqueue.observe.wording import Wording
from jobqueue.records import WhenFull

#: What happens to further jobs of a full queue.
_WHEN_FULL = {
    WhenFull.SHED.value: _("At 100 %, jobs that are less urgent than usual are dropped."),
    WhenFull.BLOCK.value: _("At 100 %, producers wait."),
    WhenFull.RAISE.value: _("At 100 %, jobs are refused."),
}


def _full(one: Finding, wording: Wording, now: datetime) -> str:
    text = gettext("The queue %(queue)s is full: %(waiting)s, %(share)s of its capacity of %(capacity)s.")
    told = text % {
        "queue": one.queues[0],
        "waiting": waiting(one, wording),
        "share": wording.percent(one.share),
        "capacity": wording.number(one.capacity),
    }
    return f"{told} {_WHEN_FULL[one.reason]}" if one.reason in _WHEN_FULL else told


def _several_full(one: Finding, wording: Wording, now: datetime) -> str:
    text = gettext("%(number)s queues are full, and %(waiting)s in them: %(names)s.")
    return text % several_names(one, one.queues, wording)


def _relay_lost(one: Finding, wording: Wording, now: datetime) -> str:
    text = gettext(
        "The shared database has been out of reach for %(length)s, and %(waiting)s to be relayed: %(reason)s."
    )
    since = wording.since(one.since, now)
    return text % {"length": since, "waiting": waiting(one, wording), "reason": one.reason.rstrip(".")}


def _relay_idle(one: Finding, wording: Wording, now: datetime) -> str:
    text = gettext("No worker relays jobs: %(waiting)s, the oldest for %(length)s.")
    return text % {"waiting": waiting(one, wording), "length": wording.since(one.since, now)}


def _paused(one: Finding, wording: Wording, now: datetime) -> str:
    text = (
        gettext("The queue %(name)s has been paused for %(length)s, since %(since)s, and %(due)s")
        if one.queues
        else gettext("The job type %(name)s has been paused for %(length)s, since %(since)s, and %(due)s")
    )
    told = text % {
        "name": (one.queues or one.types)[0],
        "length": wording.since(one.since, now),
        "since": wording.moment(one.since or now),
        "due": due(one, wording),
    }
    return f"{told}: {one.reason.rstrip('.')}." if one.reason else f"{told}."


def _several_paused(one: Finding, wording: Wording, now: datetime) -> str:
    text = gettext("%(number)s queues and types have been paused for up to %(length)s, and %(due)s: %(names)s.")
    names = (*one.queues, *one.types)
    about = {"length": wording.since(one.since, now), "due": due(one, wording)}
    return text % {**several_names(one, names, wording), **about}


def _stalled(one: Finding, wording: Wording, now: datetime) -> str:
    text = gettext("The queue %(queue)s does not move: %(due)s, the oldest for %(length)s, and no attempt ends.")
    about = {"due": due(one, wording), "length": wording.since(one.since, now)}
    return text % {"queue": one.queues[0], **about}


def _several_stalled(one: Finding, wording: Wording, now: datetime) -> str:
    text = gettext("%(number)s queues do not move: %(due)s, the oldest for %(length)s, and no attempt ends: %(names)s.")
    about = {"due": due(one, wording), "length": wording.since(one.since, now)}
    return text % {**several_names(one, one.queues, wording), **about}


def _overdue(one: Finding, wording: Wording, now: datetime) -> str:
    text = gettext("A job of type %(type)s in the queue %(queue)s has been due for %(length)s.")
    return text % {"type": one.types[0], "queue": one.queues[0], "length": wording.since(one.since, now)}


def _several_overdue(one: Finding, wording: Wording, now: datetime) -> str:
    text = gettext("Jobs of %(number)s types have been due for up to %(length)s: %(names)s.")
    return text % {**several_names(one, one.types, wording), "length": wording.since(one.since, now)}


def _stuck(one: Finding, wording: Wording, now: datetime) -> str:
    text = gettext("Job %(id)s of type %(type)s has reported no progress for %(length)s.")
    return text % {"id": one.job, "type": one.types[0], "length": wording.since(one.since, now)}


def _several_stuck(one: Finding, wording: Wording, now: datetime) -> str:
    text = gettext("%(number)s running jobs have reported no progress for up to %(length)s.")
    return text % {"number": wording.number(one.jobs), "length": wording.since(one.since, now)}


def _flood(one: Finding, wording: Wording, now: datetime) -> str:
    text = gettext("The tenant %(tenant)s floods the queue %(queue)s: it has about %(share)s of the jobs, and %(due)s.")
    about = {"share": wording.percent(one.share), "due": due(one, wording)}
    return text % {"tenant": one.tenant, "queue": one.queues[0], **about}


def _several_floods(one: Finding, wording: Wording, now: datetime) -> str:
    text = gettext("Some tenants flood %(number)s queues, and %(due)s: %(names)s.")
    return text % {**several_names(one, one.queues, wording), "due": due(one, wording)}


WORDS = {
    Cause.RELAY_LOST: Words(
        _relay_lost,
        _relay_lost,
        _("Jobs are kept here, and relayed when the shared database is back."),
    ),
    Cause.RELAY_IDLE: Words(
        _relay_idle,
        _relay_idle,
        _("Start a worker that relays jobs, with manage.py runworker."),
    ),
    Cause.QUEUE_FULL: Words(
        _full,
        _several_full,
        _("Start more workers, or find out what fills the queue."),
    ),
    Cause.QUEUE_STALLED: Words(
        _stalled,
        _several_stalled,
        _("See what the running jobs are doing. If all slots are busy, start more workers."),
    ),
    Cause.PAUSE_FORGOTTEN: Words(
        _paused,
        _several_paused,
        _("Resume the queue or type if the reason for the pause is gone."),
    ),
    Cause.PROGRESS_STUCK: Words(
        _stuck,
        _several_stuck,
        _("Cancel the job if it hangs."),
    ),
    Cause.TENANT_FLOOD: Words(
        _flood,
        _several_floods,
        _("Give these jobs a lower priority, or move them to another queue. With fair in QUEUES, tenants take turns."),
    ),
    Cause.OVERDUE: Words(
        _overdue,
        _several_overdue,
        _("Start more workers, or raise the priority."),
    ),
    Cause.PAUSED: Words(_paused, _several_paused),
}
