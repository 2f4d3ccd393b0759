"""Sentences about failures."""

from __future__ import annotations

from datetime import datetime

from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from jobqueue.observe.health.finding import Cause, Finding
from jobqueue.observe.health.sentences.words import Words, count, several_names
from jobqueue.observe.wording import Wording


def _failing(one: Finding, wording: Wording, now: datetime) -> str:
    text = gettext("Jobs of type %(type)s fail: %(failed)s of %(attempts)s in %(length)s, usually %(usual)s.")
    told = text % {
        "type": one.types[0],
        "failed": wording.number(one.failures.failed),
        "attempts": wording.attempts(one.failures.attempts),
        "length": wording.length(one.failures.window),
        "usual": wording.percent(one.failures.usual),
    }
    if not one.dead:
        return told
    more = ngettext("%(count)s dead letter waits.", "%(count)s dead letters wait.", one.dead)
    return f"{told} {more % {'count': count(one, wording, one.dead)}}"


def _several_failing(one: Finding, wording: Wording, now: datetime) -> str:
    text = gettext("Jobs of %(number)s types fail: %(names)s.")
    return text % several_names(one, one.types, wording)


def _died_lately(one: Finding, wording: Wording, now: datetime) -> str:
    text = ngettext(
        "%(count)s job of type %(type)s became a dead letter in the last hour; %(dead)s wait in all.",
        "%(count)s jobs of type %(type)s became dead letters in the last hour; %(dead)s wait in all.",
        one.jobs,
    )
    return text % {
        "count": wording.number(one.jobs),
        "type": one.types[0],
        "dead": count(one, wording, one.dead),
    }


def _several_died_lately(one: Finding, wording: Wording, now: datetime) -> str:
    text = gettext("%(count)s jobs of %(number)s types became dead letters in the last hour: %(names)s.")
    return text % {"count": wording.number(one.jobs), **several_names(one, one.types, wording)}


def _dead_letters(one: Finding, wording: Wording, now: datetime) -> str:
    text = ngettext(
        "%(count)s dead letter waits for a decision.", "%(count)s dead letters wait for a decision.", one.jobs
    )
    return text % {"count": count(one, wording)}


WORDS = {
    Cause.FAILING: Words(
        _failing,
        _several_failing,
        _("Look at the errors, fix their cause, then retry the dead letters."),
    ),
    Cause.DIED_LATELY: Words(
        _died_lately,
        _several_died_lately,
        _("Look at the errors, then retry or purge the dead letters."),
    ),
    Cause.DEAD_LETTERS: Words(
        _dead_letters,
        _dead_letters,
        _("Retry or purge the dead letters."),
    ),
}
