"""Drafts of jobs, and the receipts for them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A complete job that isn't stored yet. ``payload`` and ``context`` are JSON text; ``delay`` counts from now.

    Of drafts with ``debounce`` and the same ``unique_key``, the first is stored, and each further one moves it, but not
    past ``max_wait`` from its creation; ``replace_payload`` gives it the newest payload. Of those with ``throttle``,
    the first is stored, and stands for the others for this long.
    ``concurrency_key`` has the values of the keys of its limits, by name, as JSON text.
    In an ordered queue, ``lane`` names its lane, and ``parallel`` says whether it may run beside others there. It is
    stored in other queues too, because the job may be moved, or the queue be ordered later.
    ``fair_key`` is the value by which a fair queue takes turns.
    """

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
    concurrency_key: str | None = None
    fair_key: str | None = None
    debounce: timedelta | None = None
    max_wait: timedelta | None = None
    replace_payload: bool = False
    throttle: timedelta | None = None
    parallel: bool | None = None
    lane: str | None = None

    @property
    def wait(self) -> timedelta:
        """Return how long after now it is due, unless it has a moment of its own."""
        return self.delay if self.debounce is None else self.debounce

    @property
    def key(self) -> tuple[str, str] | None:
        """Return the key that may make this draft a duplicate, with its column."""
        if self.idempotency_key is not None:
            return ("idempotency_key", self.idempotency_key)
        return None if self.unique_key is None else ("unique_key", self.unique_key)


class Admission(StrEnum):
    """The outcome of enqueueing a draft: a job was stored, a job with its key existed, or its queue was full."""

    CREATED = "created"
    EXISTING = "existing"
    SHED = "shed"


@dataclass(frozen=True, slots=True)
class DraftReceipt:
    """The result of ``enqueue``: the job's id, and whether this call stored the job.

    ``payload_differs`` is true for a duplicate whose payload differs from the stored one. The stored payload is kept.
    If the draft was shed because its queue is full, nothing was stored, and the id is ``None``.
    """

    id: str
    outcome: Admission
    payload_differs: bool = False

    @property
    def created(self) -> bool:
        """Return whether this call stored the job."""
        return self.outcome is Admission.CREATED

    @property
    def is_shed(self) -> bool:
        """Return whether nothing was stored, because the queue is full and the job isn't urgent."""
        return self.outcome is Admission.SHED
