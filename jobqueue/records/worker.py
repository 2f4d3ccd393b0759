"""What is known of a worker, and what it tells of its jobs while they run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

#: How often a worker says that it is up, and after what silence it counts as dead.
NEWS_EVERY = timedelta(seconds=10)
SILENT_FOR = timedelta(seconds=60)


class WorkerState(StrEnum):
    """Whether a worker still takes jobs."""

    RUNNING = "running"
    STOPPING = "stopping"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRecord:
    """One worker: who and where it is, what it serves (``queues`` None: all), and how busy it is.

    ``left_out`` are jobs that it can neither run nor end, by id, each with the reason.
    """

    owner: str
    name: str
    host: str
    pid: int
    version: str
    started_at: datetime
    seen_at: datetime
    state: WorkerState = WorkerState.RUNNING
    processes: int
    slots: int
    busy: int = 0
    queues: tuple[str, ...] | None = None
    types: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)

    def is_alive(self, now: datetime) -> bool:
        """Whether it was heard of lately."""
        return now - self.seen_at < SILENT_FOR


class Progress(NamedTuple):
    """How far a running job says it is; ``report`` is JSON text."""

    id: str
    fence: int
    owner: str
    report: str
