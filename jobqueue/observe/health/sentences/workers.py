"""Sentences about workers."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from jobqueue.observe.health.finding import Cause, Finding
from jobqueue.observe.health.sentences.words import Words, due, several_names, waiting
from jobqueue.observe.wording import Wording


def _no_worker(one: Finding, wording: Wording, now: datetime) -> str:
    told = [due(one, wording)] if one.due else []
    if one.held:
        text = ngettext(
            "%(count)s job is held by a worker that died", "%(count)s jobs are held by workers that died", one.held
        )
        told.append(text % {"count": wording.number(one.held)})
    return gettext("No worker is up: %(jobs)s.") % {"jobs": ", ".join(told)}


def _held(one: Finding, wording: Wording, now: datetime) -> str:
    text = ngettext(
        "Worker %(worker)s died or lost the database, and its lease of %(count)s job ended %(ago)s.",
        "Worker %(worker)s died or lost the database, and its leases of %(count)s jobs ended %(ago)s.",
        one.held,
    )
    ago = wording.ago(one.since or now, now)
    return text % {"worker": one.worker, "count": wording.number(one.held), "ago": ago}


def _held_by_several(one: Finding, wording: Wording, now: datetime) -> str:
    text = gettext("%(number)s workers died or lost the database, and their leases of %(count)s jobs ended.")
    return text % {"number": wording.number(len(one.parts)), "count": wording.number(one.held)}


def _silent(one: Finding, wording: Wording, now: datetime) -> str:
    text = gettext("Worker %(worker)s has been silent for %(length)s, and no other worker has replaced it.")
    return text % {"worker": one.worker, "length": wording.since(one.since, now)}


def _several_silent(one: Finding, wording: Wording, now: datetime) -> str:
    text = gettext("%(number)s workers have been silent for up to %(length)s, and no other workers have replaced them.")
    return text % {"number": wording.number(len(one.parts)), "length": wording.since(one.since, now)}


def _left_out(one: Finding, wording: Wording, now: datetime) -> str:
    text = gettext("Job %(id)s can neither be run nor ended, and worker %(worker)s leaves it out: %(reason)s.")
    return text % {"id": one.job, "worker": one.worker, "reason": one.reason}


def _several_left_out(one: Finding, wording: Wording, now: datetime) -> str:
    text = gettext("%(number)s jobs can neither be run nor ended.")
    return text % {"number": wording.number(len({part.job for part in one.parts}))}


def _queue_not_served(one: Finding, wording: Wording, now: datetime) -> str:
    text = gettext("No live worker serves the queue %(queue)s: %(waiting)s.")
    return text % {"queue": one.queues[0], "waiting": waiting(one, wording)}


def _queues_not_served(one: Finding, wording: Wording, now: datetime) -> str:
    text = gettext("No live worker serves %(number)s queues, and %(waiting)s in them: %(names)s.")
    return text % several_names(one, one.queues, wording)


def _type_not_served(one: Finding, wording: Wording, now: datetime) -> str:
    about = {"type": one.types[0], "queue": ", ".join(one.queues), "waiting": waiting(one, wording)}
    if one.queues:
        return gettext("No live worker takes jobs of type %(type)s from the queue %(queue)s: %(waiting)s.") % about
    return gettext("No live worker takes jobs of type %(type)s: %(waiting)s.") % about


def _types_not_served(one: Finding, wording: Wording, now: datetime) -> str:
    text = gettext("No live worker takes jobs of %(number)s types, of which %(waiting)s: %(names)s.")
    return text % several_names(one, one.types, wording)


def _stopping(one: Finding, wording: Wording, now: datetime) -> str:
    text = gettext("The workers that take jobs of type %(type)s are quiet or stopping: %(waiting)s.")
    return text % {"type": one.types[0], "waiting": waiting(one, wording)}


def _several_stopping(one: Finding, wording: Wording, now: datetime) -> str:
    text = gettext("The workers that take jobs of %(number)s types are quiet or stopping, and %(waiting)s: %(names)s.")
    return text % several_names(one, one.types, wording)


def _unknown(one: Finding, wording: Wording, now: datetime) -> str:
    return gettext("This release has no handler for the type %(type)s.") % {"type": one.types[0]}


def _several_unknown(one: Finding, wording: Wording, now: datetime) -> str:
    text = gettext("This release has no handler for %(number)s types: %(names)s.")
    return text % several_names(one, one.types, wording)


def _clocks(one: Finding, wording: Wording, now: datetime) -> str:
    about = {"worker": one.worker, "length": wording.length(abs(one.length))}
    if one.worker:
        return gettext("The clock of worker %(worker)s is %(length)s ahead of the database's.") % about
    if one.length > timedelta(0):
        return gettext("The clock of this machine is %(length)s ahead of the database's.") % about
    return gettext("The clock of this machine is %(length)s behind the database's.") % about


def _several_clocks(one: Finding, wording: Wording, now: datetime) -> str:
    text = gettext("%(number)s clocks are up to %(length)s away from the database's.")
    longest = max(abs(part.length) for part in one.parts)
    return text % {"number": wording.number(len(one.parts)), "length": wording.length(longest)}


WORDS = {
    Cause.NO_WORKER: Words(
        _no_worker,
        _no_worker,
        _("Start a worker with manage.py runworker."),
    ),
    Cause.JOB_LEFT_OUT: Words(
        _left_out,
        _several_left_out,
        _("Correct or delete such rows in the table of jobs."),
    ),
    Cause.QUEUE_NOT_SERVED: Words(
        _queue_not_served,
        _queues_not_served,
        _("Start a worker for the queue with manage.py runworker --queue."),
    ),
    Cause.TYPE_NOT_SERVED: Words(
        _type_not_served,
        _types_not_served,
        _("Deploy a worker that has a handler for the type, or change the options of the workers."),
    ),
    Cause.WORKERS_STOPPING: Words(
        _stopping,
        _several_stopping,
        _("Start other workers."),
    ),
    Cause.HELD_BY_DEAD: Words(
        _held,
        _held_by_several,
        _("Live workers recover the jobs within a minute. Find out why the worker ended."),
    ),
    Cause.WORKER_SILENT: Words(
        _silent,
        _several_silent,
        _("Find out why the worker ended, and start another one."),
    ),
    Cause.CLOCKS_APART: Words(
        _clocks,
        _several_clocks,
        _("Synchronise the clocks, for example with NTP."),
    ),
    Cause.TYPE_UNKNOWN: Words(
        _unknown,
        _several_unknown,
        _("Deploy a release that has a handler for the type."),
    ),
}
