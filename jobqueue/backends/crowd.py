"""What stands in the way of claims: due jobs that a worker leaves alone, and the groups behind them that it may run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import product
from typing import NamedTuple

from jobqueue.clock import SYSTEM
from jobqueue.records import ClaimRequest, Cycle

#: So many groups are looked through for each claim, in some milliseconds.
WALKED_AT_ONCE = 1_000
#: Seconds to rest after a walk through more, for each of them: then it takes a twentieth of the time at most.
REST_FOR_EACH = 0.0002


class Group(NamedTuple):
    """A queue, a type and a priority that has queued jobs."""

    queue: str
    type: str
    priority: int


class Crowd:
    """Whether jobs to leave alone stand at the head of the order, and what was found behind them.

    Then claims go group by group. A claim finds out which groups there are by a walk through them all. Where another
    program has made very many, that takes long; so it rests after that, and claims go by what it has found. A job in a
    group that is new waits for the next walk.
    """

    def __init__(self) -> None:
        self.is_met = False
        self.is_large = False
        self._found: Sequence[Group] = ()
        self._has_more = False
        self._walk_at = 0.0

    @property
    def is_known(self) -> bool:
        """Whether claims go by what the last walk found."""
        return self.is_met and self.is_large and SYSTEM.monotonic() < self._walk_at

    def met(self, count: int, *, is_met: bool) -> None:
        """Note what a claim met, and how many groups it went through by itself."""
        self.is_met, self.is_large = is_met, count > WALKED_AT_ONCE

    def open_to(self, request: ClaimRequest) -> Sequence[Group]:
        """Name the groups that may hold what is asked for: all that can be, where these are few."""
        if self.is_large and request.queues and len(request.queues) * len(request.types) <= WALKED_AT_ONCE / 10:
            return [Group(*one) for one in product(sorted(request.queues), sorted(request.types), range(1, 11))]
        return self._found

    def walked(self, count: int, *, is_met: bool, due: Sequence[Group], later: Sequence[Group] = ()) -> None:
        """Note how many groups a walk found, and those that are open: the due ones in order, and the others by time."""
        self.met(count, is_met=is_met)
        self._found = [*due[:WALKED_AT_ONCE], *later[:WALKED_AT_ONCE]] if self.is_large else due
        self._has_more = len(due) > WALKED_AT_ONCE
        self._walk_at = SYSTEM.monotonic() + REST_FOR_EACH * count

    def told(self, cycle: Cycle, request: ClaimRequest | None) -> Cycle:
        """Say of a cycle when it is worth asking again, where there is another walk to come."""
        if request is None or len(cycle.claims) == request.limit or not self.is_known:
            return cycle
        if self._has_more:  # what was found is used up, and there is more
            self._walk_at = 0.0
        rest = timedelta(seconds=max(0.0, self._walk_at - SYSTEM.monotonic()))
        next_due = rest if cycle.next_due is None else min(cycle.next_due, rest)
        return replace(cycle, next_due=next_due, is_partial=True)
