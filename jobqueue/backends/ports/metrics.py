"""The port of metrics."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from jobqueue.policy.stretches import together
from jobqueue.records import (
    Depth,
    Lengths,
    MetricSum,
    Scope,
    Stretch,
    Tally,
)
from jobqueue.records.metric import COUNTED_TO, MOST_GROUPS


class Metrics(ABC):
    """Counts of attempts by their outcome, and samples of the depth, for each stretch of time."""

    @abstractmethod
    def add(self, moment: datetime, tallies: Sequence[Tally]) -> bool:
        """Add tallies to the stretches that contain a moment. Return whether they were added.

        If another process has locked one of the rows, no tally is added, because no process waits for metrics. Each
        tally is added to three totals: that of its queue and type, that of its queue, and that of all queues. A tally
        without a type is added to the last two, and one without a queue only to the last. A stretch has totals for at
        most ``MOST_GROUPS`` pairs of queue and type, and for as many queues. Further tallies are added only to the
        wider totals.
        """

    @abstractmethod
    def sample(self, moment: datetime) -> bool:
        """Store a sample of this minute, unless there is one: the depth of each queue and type.

        Return whether this minute has a sample afterwards. Also delete metrics that are too old.
        """

    @abstractmethod
    def depths(self, cap: int = COUNTED_TO, most: int = MOST_GROUPS) -> list[Depth]:
        """Count queued and running jobs of each queue and type, up to ``cap``, for at most ``most`` such pairs.

        If there are many pairs, or if the database counts slowly, the cap of each is lower. The cost depends on these
        limits, not on the number of jobs.
        """

    @abstractmethod
    def counters(self) -> list[Tally]:
        """Read the sums of all attempts added so far, by queue and type. No attempt is in two of them.

        At most ``MOST_GROUPS`` pairs of queue and type have counters, and as many queues. The attempts of other types
        are in a tally of their queue without a type, and those of other queues in a tally without either. ``sample``
        deletes counters that nothing was added to for a month.
        """

    @abstractmethod
    def stretches(self, span: int, since: datetime, queue: str = "", job_type: str = "") -> list[Stretch]:
        """Read the stretches of one length that began at ``since`` or later, the oldest first.

        Without ``queue`` and ``job_type``, the stretches have the totals of all jobs.
        """

    @abstractmethod
    def totals(self, by: Scope, span: int, since: datetime, queue: str = "", job_type: str = "") -> list[MetricSum]:
        """Sum up the stretches of one length that began at ``since`` or later, by type or by queue, sorted by name.

        Attempts that were counted without a type or queue are left out.
        """

    def lengths(self, span: int, since: datetime, types: Collection[str]) -> Mapping[str, tuple[Lengths, Lengths]]:
        """Sum up how long the jobs of some types waited and ran, in the stretches that began at ``since`` or later."""
        summed = {name: together(one.tally for one in self.stretches(span, since, job_type=name)) for name in types}
        return {name: (one.waited, one.ran) for name, one in summed.items()}
