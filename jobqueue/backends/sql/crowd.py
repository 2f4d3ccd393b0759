"""The crowd at the head of the order: due jobs that a worker leaves alone, and the groups behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import product
from typing import NamedTuple

from jobqueue.clock import SYSTEM
from jobqueue.records import ClaimRequest, Cycle

#: How many groups each claim looks through. That takes some milliseconds.
WALKED_AT_ONCE = 1_000
#: Seconds to rest after a walk through more groups, for each of them: walks take at most a twentieth of the time.
REST_FOR_EACH = 0.0002


class Group(NamedTuple):
    """A queue, a type and a priority that has queued jobs."""

    queue: str
    type: str
    priority: int


class Crowd:
    """Keeps whether jobs that the worker leaves alone are at the head of the order, and what was found behind them.

    In such a crowd, claims go group by group. A claim finds the groups by a walk through all of them. If another
    program has made very many, a walk takes long. Then walks pause, and claims go by what the last one found. A job in
    a new group waits for the next walk.
    """

    def __init__(self) -> None:
        self.is_met = False
        self.is_large = False
        self._found: Sequence[Group] = ()
        self._has_more = False
        self._walk_at = 0.0

    @property
    def is_known(self) -> bool:
        """Return whether claims go by what the last walk found."""
        return self.is_met and self.is_large and SYSTEM.monotonic() < self._walk_at

    def met(self, count: int, *, is_met: bool) -> None:
        """Note whether a claim met a crowd, and how many groups it went through."""
        self.is_met, self.is_large = is_met, count > WALKED_AT_ONCE

    def open_to(self, request: ClaimRequest) -> Sequence[Group]:
        """Return the groups that may have what is asked for. If those that can exist are few, return all of them."""
        if self.is_large and request.queues and len(request.queues) * len(request.types) <= WALKED_AT_ONCE / 10:
            return [Group(*one) for one in product(sorted(request.queues), sorted(request.types), range(1, 11))]
        return self._found

    def walked(self, count: int, *, is_met: bool, due: Sequence[Group], later: Sequence[Group] = ()) -> None:
        """Note how many groups a walk found, and the open ones: the due ones in order, and the others by time."""
        self.met(count, is_met=is_met)
        self._found = [*due[:WALKED_AT_ONCE], *later[:WALKED_AT_ONCE]] if self.is_large else due
        self._has_more = len(due) > WALKED_AT_ONCE
        self._walk_at = SYSTEM.monotonic() + REST_FOR_EACH * count

    def told(self, cycle: Cycle, request: ClaimRequest | None) -> Cycle:
        """Set when to ask again after a cycle, if another walk is to come."""
        if request is None or len(cycle.claims) == request.limit or not self.is_known:
            return cycle
        if self._has_more:  # what was found is used up, and there is more
            self._walk_at = 0.0
        rest = timedelta(seconds=max(0.0, self._walk_at - SYSTEM.monotonic()))
        next_due = rest if cycle.next_due is None else min(cycle.next_due, rest)
        return replace(cycle, next_due=next_due, is_partial=True)
