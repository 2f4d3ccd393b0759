"""Queued and running jobs, as far as questions about them need."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple


class RunningJob(NamedTuple):
    """A running job. ``reports`` says that it has reported progress, in this attempt or in an earlier one."""

    id: str
    type: str
    queue: str
    owner: str
    attempts: int
    started_at: datetime | None
    updated_at: datetime
    lease_until: datetime | None
    cancel_requested_at: datetime | None
    timeout: timedelta | None
    reports: bool


class Behind(NamedTuple):
    """A place in the order of queue, type, priority, due time and id. ``due`` is as the backend stores it.

    A place without ``due`` is behind all jobs of its queue and type.
    """

    queue: str
    type: str
    priority: int = 0
    due: object = None
    id: str = ""


class QueuedJob(NamedTuple):
    """A queued job with its payload as JSON text, and the place behind it."""

    id: str
    type: str
    queue: str
    tenant: str
    payload: str
    payload_version: int
    created_at: datetime
    place: Behind
