"""Sentences about numbers that exceed the threshold of a rule."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from jobqueue.observe.health.finding import Cause, Finding
from jobqueue.observe.health.sentences.words import Words, due, listed, several_names
from jobqueue.observe.wording import Wording


def _deep(one: Finding, wording: Wording, now: datetime) -> str:
    text = gettext("The queue %(queue)s is deep: %(due)s, more than %(threshold)s, the oldest for %(length)s.")
    about = {"queue": one.queues[0], "due": due(one, wording), "length": wording.since(one.since, now)}
    return text % {**about, "threshold": wording.number(int(one.threshold or 0))}


def _several_deep(one: Finding, wording: Wording, now: datetime) -> str:
    text = gettext("%(number)s queues are deep, and %(due)s: %(names)s.")
    return text % {**several_names(one, one.queues, wording), "due": due(one, wording)}


def _success(one: Finding, wording: Wording, now: datetime) -> str:
    text = gettext("Of the jobs of type %(type)s, only %(share)s succeeded in the last hour, less than %(threshold)s.")
    about = {"type": one.types[0], "share": _percent(one.measured), "threshold": _percent(one.threshold)}
    return text % about


def _percent(share: float | None) -> str:
    # One decimal, rounded down: 94.96 % are less than 95 %.
    return gettext("%(count)s %%") % {"count": f"{int(1_000 * (share or 0.0)) / 10:g}"}


def _several_successes(one: Finding, wording: Wording, now: datetime) -> str:
    return gettext("Too few jobs of %(number)s types succeeded in the last hour: %(names)s.") % {
        "number": wording.number(len(one.types)),
        "names": listed(one.types, wording),
    }


def _slow(one: Finding, wording: Wording, now: datetime) -> str:
    text = gettext(
        "Jobs of type %(type)s are slow: one in twenty ran for %(length)s or longer in the last hour, more than "
        "%(threshold)s."
    )
    threshold = wording.length(timedelta(seconds=one.threshold or 0))
    return text % {"type": one.types[0], "length": wording.length(one.length), "threshold": threshold}


def _several_slow(one: Finding, wording: Wording, now: datetime) -> str:
    return gettext("Jobs of %(number)s types are slow: %(names)s.") % {
        "number": wording.number(len(one.types)),
        "names": listed(one.types, wording),
    }


def _critical(one: Finding, wording: Wording, now: datetime) -> str:
    text = gettext("Job %(id)s of the critical type %(type)s became a dead letter %(ago)s.")
    return text % {"id": one.job, "type": one.types[0], "ago": wording.ago(one.since or now, now)}


def _several_critical(one: Finding, wording: Wording, now: datetime) -> str:
    return gettext("%(number)s jobs of critical types became dead letters: %(names)s.") % {
        "number": wording.number(len(one.parts)),
        "names": listed(one.types, wording),
    }


WORDS = {
    Cause.QUEUE_DEEP: Words(
        _deep,
        _several_deep,
        _("Start more workers, or find out what fills the queue."),
    ),
    Cause.SUCCESS_LOW: Words(
        _success,
        _several_successes,
        _("Look at the errors, fix their cause, then retry the dead letters."),
    ),
    Cause.SLOW: Words(
        _slow,
        _several_slow,
        _("Find out what the jobs wait for. If they are meant to take long, give the type a time limit of its own."),
    ),
    Cause.CRITICAL_DEAD: Words(
        _critical,
        _several_critical,
        _("Read the error, fix its cause, then retry the job."),
    ),
}
