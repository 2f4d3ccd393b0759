"""Django's log of the admin: who changed which job, and why."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from django.contrib.admin.models import CHANGE, DELETION, LogEntry
from django.db import router

from jobqueue import backends, conf
from jobqueue.models import Job


def together() -> AbstractContextManager[object]:
    """Store a change and its entry in the log both or neither, where the queue and the log share a database."""
    if router.db_for_write(LogEntry) != conf.get("DATABASE"):
        return nullcontext()
    return backends.current().atomic_attempt()


def log(user_id: Any, jobs: Sequence[Job], message: str, *, deleted: bool = False) -> None:
    """Note what was done to jobs; under the job, whichever list it was found in."""
    plain = [Job(pk=job.pk, type=job.type) for job in jobs]
    if plain:
        LogEntry.objects.log_actions(user_id, plain, DELETION if deleted else CHANGE, message)


def logged(user_id: Any, message: str) -> int:
    """Count the entries a user has with exactly this message."""
    return LogEntry.objects.filter(user_id=user_id, change_message=message).count()
