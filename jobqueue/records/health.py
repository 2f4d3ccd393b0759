"""Values that tell how the queue is doing, read in bounded time."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple


class LapsedLeases(NamedTuple):
    """The running jobs of one owner whose leases have ended, up to a limit. ``since`` is the end of the first lease."""

    owner: str
    jobs: int
    since: datetime


class DeadJob(NamedTuple):
    """A dead letter, and when it became one, if known."""

    id: str
    type: str
    queue: str
    died_at: datetime | None


class QuietJob(NamedTuple):
    """A running job that has reported progress in this attempt, for the last time at ``since``."""

    id: str
    type: str
    queue: str
    owner: str
    since: datetime
