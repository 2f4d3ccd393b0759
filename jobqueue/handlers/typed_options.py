"""The options of a job as typed dicts, in which type checkers find misspelt options."""

from __future__ import annotations

from datetime import datetime
from typing import TypedDict

from jobqueue.policy.retry import Seconds


class JobDefaults(TypedDict, total=False):
    """The options that ``@job`` sets as defaults of its jobs."""

    queue: str
    priority: int
    max_retries: int
    timeout: Seconds | None
    delay: Seconds
    parallel: bool | None


class JobOptions(JobDefaults, total=False):
    """The options of ``using()`` and of calls by name. Use ``Unpack`` in functions that pass them on."""

    scheduled_at: datetime | None
    expires_at: datetime | None
    idempotency_key: str | None
    unique_key: str | None
    tenant: str | None
    workspace: str | None
    debounce: Seconds | None
    max_wait: Seconds | None
    replace_payload: bool
    throttle: Seconds | None
