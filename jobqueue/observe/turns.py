"""Whose turn it is in fair queues, by this release's settings."""

from __future__ import annotations

from django.utils.translation import gettext, ngettext

from jobqueue import queues
from jobqueue.backends.base import Backend
from jobqueue.observe.wording import Wording
from jobqueue.records import JobRecord, TurnPlace, TurnShare
from jobqueue.states import JobStatus


def place_of(backend: Backend, job: JobRecord) -> TurnPlace | None:
    """Return what is due before a job of a fair queue, or ``None`` if the job takes no turn."""
    options = queues.options_of(job.queue)
    if options.fair is None or job.status is not JobStatus.QUEUED or job.scheduled_at > backend.now():
        return None
    return backend.turns.place_of(job, options)


def shares(backend: Backend, queue: str, most: int = 20) -> list[TurnShare] | None:
    """Return who has which share of a queue, or ``None`` if it isn't fair."""
    options = queues.options_of(queue)
    return None if options.fair is None else backend.turns.shares(queue, options, most)


def sentences(place: TurnPlace | None, wording: Wording) -> list[str]:
    """Say how many turns are due before that of a job, unless it is the next one."""
    if place is None or not (place.turns or place.jobs):
        return []
    behind = ngettext(
        ", which has %(count)s due job before this one", ", which has %(count)s due jobs before this one", place.jobs
    ) % {"count": wording.number(place.jobs)}
    text = ngettext(
        "Its queue takes turns by %(field)s: %(count)s other is due before %(key)s%(behind)s.",
        "Its queue takes turns by %(field)s: %(count)s others are due before %(key)s%(behind)s.",
        place.turns,
    )
    about = {"field": place.field, "key": place.key or gettext("the jobs without a value")}
    about |= {"count": wording.number(place.turns), "behind": behind if place.jobs else ""}
    return [text % about]
