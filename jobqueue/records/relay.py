"""What is relayed, what the shared database says to it, and what waits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from jobqueue.states import JobStatus


@dataclass(frozen=True, slots=True)
class Batch:
    """Jobs on their way, in order of id, with their history; each a row by its columns. Their holder names the batch.

    An empty one says that nothing waits.
    """

    holder: str = ""
    jobs: tuple[Mapping[str, Any], ...] = ()
    attempts: tuple[Mapping[str, Any], ...] = ()


class Refused(NamedTuple):
    """Why a job was not taken in, and as what it stays in the outbox."""

    status: JobStatus
    reason: str
    error: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """What an outbox still has, since when, and how relaying fares: since when the other side is lost, and why."""

    count: int
    oldest: datetime | None
    relayed_at: datetime | None
    lost_at: datetime | None
    error: str
