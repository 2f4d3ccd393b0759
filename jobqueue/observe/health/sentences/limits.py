"""Sentences about limits."""

from __future__ import annotations

from datetime import datetime

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from jobqueue.observe.health.finding import Cause, Finding, Place, WithheldJobs
from jobqueue.observe.health.sentences.words import Words, due, several_names
from jobqueue.observe.wording import Wording
from jobqueue.records import Limit, Scope

#: How many of the running jobs a sentence names.
_SHOWN = 3


def _used_up(one: Finding, wording: Wording, now: datetime) -> str:
    if one.limit is None:
        return ""
    use = one.limit.use
    about = {
        "limit": _limit(use.limit, use.value, wording),
        "due": due(one, wording),
        "length": wording.since(one.since, now),
    }
    if one.place is Place.RUNNING_JOBS:
        text = gettext("%(limit)s has let nothing start for %(length)s, and %(due)s. These jobs use it up: %(jobs)s.")
        jobs = ", ".join(use.running[:_SHOWN]) + (", …" if use.used > _SHOWN else "")
        told = text % {**about, "jobs": jobs}
    elif use.next_start is not None:
        text = gettext("%(limit)s is used up, and %(due)s, the oldest for %(length)s. The next start is in %(wait)s.")
        told = text % {**about, "wait": wording.length(use.next_start)}
    else:
        told = gettext("%(limit)s is used up, and %(due)s, the oldest for %(length)s.") % about
    return f"{told} {_set_by(one.limit, wording, now)}".rstrip()


def _limit(limit: Limit, value: str, wording: Wording) -> str:
    about = {"number": wording.number(limit.number), "per": f"{limit.per:g}", "name": limit.name}
    if limit.per and limit.scope is Scope.QUEUE:
        text = gettext("The rate of %(number)s in %(per)s s for the queue %(name)s") % about
    elif limit.per:
        text = gettext("The rate of %(number)s in %(per)s s for the type %(name)s") % about
    elif limit.scope is Scope.QUEUE:
        text = gettext("The limit of %(number)s at once for the queue %(name)s") % about
    else:
        text = gettext("The limit of %(number)s at once for the type %(name)s") % about
    return (
        gettext("%(limit)s with %(key)s %(value)s") % {"limit": text, "key": limit.key, "value": value}
        if limit.key
        else text
    )


def _set_by(one: WithheldJobs, wording: Wording, now: datetime) -> str:
    if one.stored is None:
        return ""
    about = {"author": one.stored.author, "length": wording.since(one.stored.stored_at, now)}
    told = (
        gettext("%(author)s set the limit %(length)s ago") % about
        if one.stored.author
        else gettext("The limit was set %(length)s ago") % about
    )
    return f"{told}: {one.stored.reason.rstrip('.')}." if one.stored.reason else f"{told}."


def _several_used_up(one: Finding, wording: Wording, now: datetime) -> str:
    text = gettext("%(number)s limits are used up, and %(due)s, for up to %(length)s: %(names)s.")
    about = {"due": due(one, wording), "length": wording.since(one.since, now)}
    names = [part.limit.use.limit.name for part in one.parts if part.limit]
    return text % {**several_names(one, list(dict.fromkeys(names)), wording), **about, "number": len(one.parts)}


WORDS = {
    Cause.LIMIT_USED_UP: Words(
        _used_up,
        _several_used_up,
        _("Cancel the jobs that hang, or change the limit with manage.py jobqueue limits."),
    ),
}
