"""Sentences about schedules."""

from __future__ import annotations

from datetime import datetime

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from jobqueue.observe.health.finding import Cause, Finding
from jobqueue.observe.health.sentences.words import Words, listed
from jobqueue.observe.wording import Wording


def _late(one: Finding, wording: Wording, now: datetime) -> str:
    text = gettext("The schedule “%(name)s” is late: its slot has been due for %(length)s.")
    return text % {"name": one.schedule, "length": wording.since(one.since, now)}


def _several_late(one: Finding, wording: Wording, now: datetime) -> str:
    names = listed([part.schedule for part in one.parts], wording)
    return gettext("%(number)s schedules are late: %(names)s.") % {
        "number": wording.number(len(one.parts)),
        "names": names,
    }


def _in_trouble(one: Finding, wording: Wording, now: datetime) -> str:
    reason = (one.reason.splitlines() or [""])[0].rstrip(".")
    return gettext("The schedule “%(name)s” makes no jobs: %(reason)s.") % {"name": one.schedule, "reason": reason}


def _several_in_trouble(one: Finding, wording: Wording, now: datetime) -> str:
    names = listed([part.schedule for part in one.parts], wording)
    return gettext("%(number)s schedules make no jobs: %(names)s.") % {
        "number": wording.number(len(one.parts)),
        "names": names,
    }


WORDS = {
    Cause.SCHEDULE_LATE: Words(
        _late, _several_late, _("Start a worker whose code has the job type. Missed slots follow the schedule's rule.")
    ),
    Cause.SCHEDULE_IN_TROUBLE: Words(
        _in_trouble, _several_in_trouble, _("Edit the schedule. Its slots count as missed once it is right.")
    ),
}
