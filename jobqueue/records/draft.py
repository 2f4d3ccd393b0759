"""What goes in: a job that is decided, and what its caller hears."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A job fully decided but not stored. ``payload`` and ``context`` are JSON text; ``delay`` counts from now."""

    id: str
    type: str
    payload: str
    payload_version: int = 1
    queue: str = "default"
    priority: int = 5
    max_retries: int = 3
    delay: timedelta = timedelta(0)
    scheduled_at: datetime | None = None
    expires_at: datetime | None = None
    timeout: timedelta | None = None
    idempotency_key: str | None = None
    unique_key: str | None = None
    tenant: str | None = None
    workspace: str | None = None
    parent_id: str | None = None
    context: str | None = None

    @property
    def key(self) -> tuple[str, str] | None:
        """The key that may make this draft a duplicate, with the column that holds it."""
        if self.idempotency_key is not None:
            return ("idempotency_key", self.idempotency_key)
        return None if self.unique_key is None else ("unique_key", self.unique_key)


class Admission(StrEnum):
    """What became of a draft."""

    CREATED = "created"
    EXISTING = "existing"


@dataclass(frozen=True, slots=True)
class Receipt:
    """What the caller of ``enqueue`` gets: the job's id, and whether this call made the job.

    ``payload_differs`` tells of a duplicate whose stored payload is not the one offered; the stored one stands.
    """

    id: str
    outcome: Admission
    payload_differs: bool = False

    @property
    def created(self) -> bool:
        """Whether this call stored the job."""
        return self.outcome is Admission.CREATED
