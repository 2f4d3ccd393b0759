"""A job with an effect, in the two ways in which a handler may commit it, and places where its worker may die."""

from __future__ import annotations

import os
import signal

from django.contrib.auth.models import Group

from jobqueue import JobContext, job
from jobqueue.signals import completed

#: Where the worker may die; the environment says at which one. Each dies once.
PLACES = ("begun", "effect committed", "reported", "in the atomic transaction", "completion stored")


def die_at(place: str) -> None:
    """Kill the whole worker with SIGKILL, the first time that a place is reached for which this was ordered."""
    if os.environ.get("DUE_WORK_FAULT") != place:
        return
    try:
        os.close(os.open(os.environ["DUE_WORK_FAULT_MARKER"], os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os.killpg(0, signal.SIGKILL)


@job("due.note", lease=60)
def note(name: str, ctx: JobContext) -> None:
    """Safe to run twice."""
    die_at("begun")
    Group.objects.get_or_create(name=name)
    die_at("effect committed")
    ctx.progress(50)
    die_at("reported")
    ctx.enqueue(note_atomically.using(unique_key=f"atomic-{name}"), name=f"{name}, atomic")


@job("due.note_atomically", atomic=True)
def note_atomically(name: str) -> None:
    """Commits with its completion, and so need not be safe."""
    Group.objects.create(name=name)
    die_at("in the atomic transaction")


def effects(name: str) -> tuple[int, int]:
    """Count the effects of one job and of its follow-up job."""
    found = Group.objects.filter(name__startswith=name)
    return found.filter(name=name).count(), found.exclude(name=name).count()


def _die_after_completion(**_: object) -> None:
    die_at("completion stored")


completed.connect(_die_after_completion)
