"""The admin's log: who changed which job, and why."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from django.contrib.admin.models import CHANGE, DELETION, LogEntry
from django.db import router

from jobqueue import backends, conf
from jobqueue.models import Job


def together() -> AbstractContextManager[object]:
    """Make a change and its log entry atomic, if the queue and the log share a database."""
    if router.db_for_write(LogEntry) != conf.get("DATABASE"):
        return nullcontext()
    return backends.current().atomic_attempt()


def log(user_id: Any, jobs: Sequence[Job], message: str, *, deleted: bool = False) -> None:
    """Add log entries for jobs. They belong to the job, even if it was changed from the list of dead letters."""
    plain = [Job(pk=job.pk, type=job.type) for job in jobs]
    if plain:
        LogEntry.objects.log_actions(user_id, plain, DELETION if deleted else CHANGE, message)


def logged(user_id: Any, message: str) -> int:
    """Count a user's entries with exactly this message."""
    return LogEntry.objects.filter(user_id=user_id, change_message=message).count()
