"""The values of the relay: batches, refusals, and the state of an outbox."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from jobqueue.states import JobStatus


@dataclass(frozen=True, slots=True)
class Batch:
    """Jobs in transit, in order of id, with their attempts, all as dicts of columns. ``holder`` is the batch's name.

    An empty batch means that nothing waits.
    """

    holder: str = ""
    jobs: tuple[Mapping[str, Any], ...] = ()
    attempts: tuple[Mapping[str, Any], ...] = ()


class Refused(NamedTuple):
    """The reason why a job was not taken in, and its status in the outbox."""

    status: JobStatus
    reason: str
    error: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """The state of an outbox: the waiting jobs, and since when and why the shared database is lost."""

    count: int
    oldest: datetime | None
    relayed_at: datetime | None
    lost_at: datetime | None
    error: str
