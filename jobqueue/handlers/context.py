"""What a handler may know of the attempt it is part of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class JobContext:
    """The attempt a handler runs in. ``fence`` grows with each claim; outside systems can compare it."""

    job_id: str
    job_type: str
    queue: str
    attempt: int
    max_retries: int
    fence: int
    tenant: str | None = None
    workspace: str | None = None
    parent_id: str | None = None
