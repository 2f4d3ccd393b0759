"""The port of lanes: what the lanes of ordered queues contain, and which job holds another one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from jobqueue.policy.limits.limits import LimitBook
from jobqueue.records import JobRecord, LaneHold, LaneRecord

#: Jobs of a lane are counted up to this number.
MOST_COUNTED = 10_000


class Lanes(ABC):
    """Reads lanes. Nothing is kept beside the jobs, so claims and readers derive the state of a lane from its rows.

    - The jobs of a lane start in the order in which the transactions that stored them committed, whatever their
      priority. A job that is enqueued with ``parallel`` may run beside such ones before and after it.
    - A job that is not parallel is a barrier: it starts after all due jobs before it have ended, and until it has
      ended, none behind it starts.
    - A job that waits until it is due, for example for a retry, doesn't hold its lane. Once it is due, it has its old
      place. In a strict lane, jobs behind it wait, and also behind a dead letter.
    - Lanes don't touch each other, nor other queues. Limits hold for the jobs of lanes too.
    - A job that another program stored without a place gets one at the end of its lane when a worker finds it.
    """

    @abstractmethod
    def all(self, book: LimitBook, queues: Sequence[str], most: int = 100) -> list[LaneRecord]:
        """List lanes of ordered queues that have queued jobs or hold some, of each queue at most ``most``."""

    @abstractmethod
    def hold_of(self, book: LimitBook, job: JobRecord) -> LaneHold | None:
        """Return what holds a queued job in its lane, or ``None`` if nothing does."""
