"""The crowd: jobs at the front of the queue that a worker can't take, because of their queue, their type or a pause."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import product
from typing import NamedTuple

from jobqueue.clock import SYSTEM
from jobqueue.records import ClaimRequest, Cycle

#: The most groups that each claim walks through, which takes some milliseconds.
WALKED_AT_ONCE = 1_000
#: Seconds between two walks through more groups than that, for each group. Walks take at most 5 % of the time.
REST_FOR_EACH = 0.0002


class Group(NamedTuple):
    """A queue, a type and a priority that has queued jobs."""

    queue: str
    type: str
    priority: int


class Crowd:
    """Remembers whether there is a crowd, and which groups of other jobs are behind it.

    If there is a crowd, a claim walks through all groups and takes jobs from those that the worker may run. If another
    program has made very many groups, a walk takes long. Then there is a pause between two walks, in which claims use
    the groups of the last walk. A job in a new group waits for the next walk.
    """

    def __init__(self) -> None:
        self.is_met = False
        self.is_large = False
        self._found: Sequence[Group] = ()
        self._has_more = False
        self._walk_at = 0.0

    @property
    def is_known(self) -> bool:
        """Return whether claims use the groups of the last walk."""
        return self.is_met and self.is_large and SYSTEM.monotonic() < self._walk_at

    def met(self, count: int, *, is_met: bool) -> None:
        """Record whether a claim found a crowd, and how many groups it walked through."""
        self.is_met, self.is_large = is_met, count > WALKED_AT_ONCE

    def open_to(self, request: ClaimRequest) -> Sequence[Group]:
        """Return the groups that may have requested jobs. If only few groups are possible, return all of them."""
        if self.is_large and request.queues and len(request.queues) * len(request.types) <= WALKED_AT_ONCE / 10:
            return [Group(*one) for one in product(sorted(request.queues), sorted(request.types), range(1, 11))]
        return self._found

    def walked(self, count: int, *, is_met: bool, due: Sequence[Group], later: Sequence[Group] = ()) -> None:
        """Record the result of a walk: the number of groups, and those with jobs to run that are due or due later."""
        self.met(count, is_met=is_met)
        self._found = [*due[:WALKED_AT_ONCE], *later[:WALKED_AT_ONCE]] if self.is_large else due
        self._has_more = len(due) > WALKED_AT_ONCE
        self._walk_at = SYSTEM.monotonic() + REST_FOR_EACH * count

    def told(self, cycle: Cycle, request: ClaimRequest | None) -> Cycle:
        """Return a cycle whose ``next_due`` is not after the next walk."""
        if request is None or len(cycle.claims) == request.limit or not self.is_known:
            return cycle
        if self._has_more:  # the groups kept from the last walk have no more due jobs, but others may have
            self._walk_at = 0.0
        rest = timedelta(seconds=max(0.0, self._walk_at - SYSTEM.monotonic()))
        next_due = rest if cycle.next_due is None else min(cycle.next_due, rest)
        return replace(cycle, next_due=next_due, is_partial=True)
