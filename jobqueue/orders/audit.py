"""The admin's log: who changed which job, or gave which order, and why."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from django.contrib.admin.models import CHANGE, DELETION, LogEntry
from django.db import router

from jobqueue import backends, conf
from jobqueue.models import Job, Order


def together() -> AbstractContextManager[object]:
    """Make a change and its log entry atomic, if the queue and the log share a database."""
    if router.db_for_write(LogEntry) != conf.get("DATABASE"):
        return nullcontext()
    return backends.current().atomic_attempt()


def log(user_id: Any, job: Job, message: str, *, deleted: bool = False) -> None:
    """Add the entry for one job. It belongs to the job, even if it was changed from the list of dead letters."""
    plain = Job(pk=job.pk, type=job.type)
    LogEntry.objects.log_actions(user_id, [plain], DELETION if deleted else CHANGE, message)


def log_order(user_id: Any, order: Order, message: str) -> None:
    """Add an entry for an order, whose title says what it does to how many jobs."""
    LogEntry.objects.log_actions(user_id, [order], CHANGE, message)
