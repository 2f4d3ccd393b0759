"""Workers, and the progress of their jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

#: How often a worker reports that it is up, and the silence after which it counts as dead.
NEWS_EVERY = timedelta(seconds=10)
SILENT_FOR = timedelta(seconds=60)


class WorkerState(StrEnum):
    """Whether a worker still takes jobs."""

    RUNNING = "running"
    QUIET = "quiet"
    STOPPING = "stopping"


class WorkerRequest(StrEnum):
    """What an operator asked of a worker: to take no more jobs, or to stop."""

    QUIET = "quiet"
    STOP = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRecord:
    """A worker: who and where it is, the queues it serves (``None``: all), and how busy it is.

    ``left_out`` are jobs that it can neither run nor end, by id, each with the reason. ``lock`` names the file that it
    keeps locked while one of its processes lives; it is empty where no lock can prove a death. ``asked`` is
    what an operator asked of it, whether or not the worker has heard of that yet.
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
    lock: str = ""
    asked: WorkerRequest | None = None

    def is_alive(self, now: datetime) -> bool:
        """Return whether the worker has reported recently."""
        return is_recent(self.seen_at, now)

    def serves(self, queue: str | None = None, type: str | None = None) -> bool:  # noqa: A002 - as the column is called
        """Return whether the worker serves a queue and a type; ``None`` stands for any."""
        in_queue = self.queues is None or queue is None or queue in self.queues
        return in_queue and (type is None or type in self.types)

    def takes(self, queue: str | None = None, type: str | None = None) -> bool:  # noqa: A002 - as the column is called
        """Return whether it serves them and still takes jobs; a worker that is quiet or stops takes none."""
        return self.state is WorkerState.RUNNING and self.serves(queue, type)


def is_recent(seen_at: datetime, now: datetime) -> bool:
    """Return whether a worker that last reported at a moment still counts as alive."""
    return now - seen_at < SILENT_FOR


class Progress(NamedTuple):
    """The progress of a running job. ``report`` is JSON text."""

    id: str
    fence: int
    owner: str
    report: str
