"""Lanes of ordered queues: what they contain, and what holds their jobs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Hold(StrEnum):
    """What the job does that holds a lane: it runs, it is due and comes first, it waits, or it is a dead letter."""

    RUNS = "runs"
    IS_DUE = "is due"
    WAITS = "waits"
    IS_DEAD = "is dead"


@dataclass(frozen=True, slots=True)
class LaneHold:
    """The job that holds others of its lane. ``due_at`` is when it is due, if it waits."""

    id: str
    hold: Hold
    due_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class LaneRecord:
    """A lane: how many of its jobs are queued, which run, its head, and what holds it.

    The head is the first queued job. ``hold`` is what holds the head, or the first barrier behind parallel jobs.
    """

    queue: str
    name: str
    depth: int
    head: str | None
    running: tuple[str, ...] = ()
    hold: LaneHold | None = None

    @property
    def is_stopped(self) -> bool:
        """Return whether it is strict and has stopped at a dead letter."""
        return self.hold is not None and self.hold.hold is Hold.IS_DEAD
