"""Drafts of jobs, and the receipts for them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A complete job that isn't stored yet. ``payload`` and ``context`` are JSON text; ``delay`` counts from now."""

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
        """Return the key that may make this draft a duplicate, with its column."""
        if self.idempotency_key is not None:
            return ("idempotency_key", self.idempotency_key)
        return None if self.unique_key is None else ("unique_key", self.unique_key)


class Admission(StrEnum):
    """The outcome of enqueueing a draft: a new job was stored, or a job with its key already existed."""

    CREATED = "created"
    EXISTING = "existing"


@dataclass(frozen=True, slots=True)
class DraftReceipt:
    """The result of ``enqueue``: the job's id, and whether this call stored the job.

    ``payload_differs`` is true for a duplicate whose payload differs from the stored one. The stored payload is kept.
    """

    id: str
    outcome: Admission
    payload_differs: bool = False

    @property
    def created(self) -> bool:
        """Return whether this call stored the job."""
        return self.outcome is Admission.CREATED
