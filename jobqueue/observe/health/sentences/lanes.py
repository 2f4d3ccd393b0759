"""Sentences about lanes."""

from __future__ import annotations

from datetime import datetime

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from jobqueue.observe.health.finding import Cause, Finding
from jobqueue.observe.health.sentences.words import Words, several_names, waiting
from jobqueue.observe.wording import Wording


def _stopped(one: Finding, wording: Wording, _now: datetime) -> str:
    text = gettext("A lane of the queue %(queue)s has stopped at %(id)s, which is a dead letter: %(waiting)s.")
    return text % {"queue": one.queues[0], "id": one.job, "waiting": waiting(one, wording)}


def _several_stopped(one: Finding, wording: Wording, _now: datetime) -> str:
    text = gettext("%(number)s lanes have stopped at dead letters, and %(waiting)s in them: %(names)s.")
    about = {"number": wording.number(len(one.parts))}
    return text % {**several_names(one, one.queues, wording), **about}


WORDS = {
    Cause.LANE_STOPPED: Words(
        _stopped,
        _several_stopped,
        _("Retry the dead letter, or purge it to skip it."),
    ),
}
