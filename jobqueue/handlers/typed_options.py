"""The options of a job as a type checker knows them, so that it finds a misspelt one."""

from __future__ import annotations

from datetime import datetime
from typing import TypedDict

from jobqueue.policy.retry import Seconds


class JobDefaults(TypedDict, total=False):
    """What ``@job`` may say of every job of its type, beside what it says of the type itself."""

    queue: str
    priority: int
    max_retries: int
    timeout: Seconds | None
    delay: Seconds


class JobOptions(JobDefaults, total=False):
    """What ``using()`` and the calls by name take; for ``Unpack`` in functions that pass options on."""

    scheduled_at: datetime | None
    expires_at: datetime | None
    idempotency_key: str | None
    unique_key: str | None
    tenant: str | None
    workspace: str | None
