"""The gauge of a queue: how many jobs waited when a worker last counted them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

#: How often workers count the jobs of queues with a capacity, and when a gauge is so old that no worker counts.
SAMPLE_EVERY = timedelta(seconds=1)
STALE_AFTER = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class Gauge:
    """The gauge of one queue. ``age`` is ``None`` if nobody has counted yet.

    ``shed`` counts the jobs that were not stored, because the queue was full.
    """

    queue: str
    queued: int = 0
    age: timedelta | None = None
    shed: int = 0
    shed_at: datetime | None = None
