"""Whose turn it is in a fair queue: values in, a decision out.

Each turn has a virtual time, which grows by ``1 / weight`` with each job. The turn whose next job begins first in
virtual time goes first. The clock of the queue and priority is where the last job began. A turn that had no work, or
could not run, begins at the clock, so that it gets no credit for its absence.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush, nsmallest
from typing import Any

from jobqueue.policy.limits.limits import Candidate
from jobqueue.records.turn import ServedTurn

#: The turn of the jobs that have no value.
NO_VALUE = ""
#: The most turns whose virtual times are remembered. Others begin at the clock.
_REMEMBERED = 10_000
#: Virtual times above this are not ours: another program wrote them. Below, adding a job always makes a difference.
_LATEST = 1e12

#: The due time and the id of the first job of a turn.
Head = tuple[Any, str]
#: Where a turn's next job begins, and where its last one ended. Of turns that are level, the one that was not served
#: for longer goes first.
Order = tuple[float, float]


class VirtualTimes:
    """The virtual times of the turns of one queue and priority."""

    def __init__(self, weights: Mapping[str, float] | None = None) -> None:
        self.clock = 0.0
        self._weights = dict(weights or {})
        self._finishes: dict[str, float] = {}

    def step(self, key: str) -> float:
        """Return how much a job moves its turn back."""
        return 1.0 / self._weights.get(key, 1.0)

    def order(self, key: str) -> Order:
        """Return the place of a turn in the order of turns."""
        finish = self._finishes.get(key, -math.inf)
        return (max(self.clock, finish), finish)

    def in_line(self, firsts: Mapping[str, Head], most: int) -> list[tuple[float, float, Head, str]]:
        """Return the first of these turns in order, with their first jobs, as a heap."""
        clock, never, finish_of = self.clock, -math.inf, self._finishes.get
        line = [
            (finish if (finish := finish_of(key, never)) > clock else clock, finish, first, key)
            for key, first in firsts.items()
        ]
        return nsmallest(most, line) if len(line) > most else sorted(line)

    def lines(self, queue: str, priority: int, counts: Mapping[str, int]) -> list[ServedTurn]:
        """Return what to store for a claim that took jobs from turns. It counts once it is recalled."""
        begins = {key: self.order(key)[0] for key in counts}
        lasts = (begins[key] + (count - 1) * self.step(key) for key, count in counts.items())
        clock = max(self.clock, *lasts)
        return [
            ServedTurn(queue, priority, key, count, begins[key] + count * self.step(key), clock)
            for key, count in counts.items()
        ]

    def recall(self, lines: Iterable[ServedTurn]) -> None:
        """Take over the virtual times of lines that claims have stored, the oldest first.

        No turn is more than one job ahead of the clock, whatever another program has written.
        """
        for line in lines:
            if not (-_LATEST < line.clock < _LATEST and -_LATEST < line.finish < _LATEST):  # or no number
                continue
            self.clock = max(self.clock, line.clock)
            self._finishes.pop(line.key, None)  # so that the order of the dictionary is that of the last services
            self._finishes[line.key] = min(line.finish, line.clock + self.step(line.key))
        while len(self._finishes) > _REMEMBERED:
            del self._finishes[next(iter(self._finishes))]


def in_turns(
    times: VirtualTimes, lines: Mapping[str, Sequence[Candidate]], admits: Callable[[Candidate], bool]
) -> Iterator[tuple[str, Candidate]]:
    """Yield the jobs of turns with their keys, in fair order. Of each turn, pass over the jobs that are not admitted.

    ``lines`` has the first due jobs of each turn, in the order of claims.
    """
    waiting = {key: iter(line) for key, line in lines.items()}
    firsts = {key: (line[0].scheduled_at, line[0].id) for key, line in lines.items() if line}
    queue = times.in_line(firsts, len(firsts))
    while queue:
        begin, _finish, first, key = heappop(queue)
        found = next(filter(admits, waiting[key]), None)
        if found is None:
            continue
        yield key, found
        end = begin + times.step(key)
        heappush(queue, (end, end, first, key))


def missing(
    times: VirtualTimes,
    lines: Mapping[str, Sequence[Candidate]],
    heads: Mapping[str, Head],
    admits: Callable[[Candidate], bool],
    most: int,
) -> Counter[str]:
    """Return how many more jobs of which turns must be read, to know the first ``most`` jobs in fair order.

    ``heads`` has the turns that may have further jobs, with the places of their first jobs.
    """
    waiting = {key: iter(line) for key, line in lines.items()}
    firsts = {**heads, **{key: (line[0].scheduled_at, line[0].id) for key, line in lines.items() if line}}
    queue = times.in_line(firsts, most)
    unread: Counter[str] = Counter()
    count = 0
    while queue and count < most:
        begin, _finish, first, key = heappop(queue)
        if key not in waiting or next(filter(admits, waiting[key]), None) is None:
            if key not in heads:
                continue
            unread[key] += 1
        count += 1
        end = begin + times.step(key)
        heappush(queue, (end, end, first, key))
    return unread


def before(times: VirtualTimes, key: str, firsts: Mapping[str, Head]) -> int:
    """Return how many of the turns with these first due jobs are due before the turn with this key."""
    order = [turn[-1] for turn in times.in_line(firsts, len(firsts))]
    if key in firsts:
        return order.index(key)
    return sum(times.order(other) <= times.order(key) for other in order)
