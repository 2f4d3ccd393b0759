"""Sentences about the duties that one worker does for all."""

from __future__ import annotations

from datetime import datetime

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from jobqueue.observe.health.finding import Cause, Finding
from jobqueue.observe.health.sentences.words import Words, listed
from jobqueue.observe.wording import Wording


def _failing(one: Finding, wording: Wording, now: datetime) -> str:
    text = gettext("The workers' duty “%(duty)s” has failed for %(length)s: %(reason)s.")
    reason = (one.reason.splitlines() or [""])[0].rstrip(".")
    return text % {"duty": one.duty, "length": wording.since(one.since, now), "reason": reason}


def _several_failing(one: Finding, wording: Wording, now: datetime) -> str:
    names = listed([part.duty for part in one.parts], wording)
    return gettext("Duties of the workers have failed: %(names)s.") % {"names": names}


WORDS = {
    Cause.DUTY_FAILING: Words(
        _failing,
        _several_failing,
        _("The log of the worker that does the duty has the traceback. Jobs are not affected."),
    ),
}
