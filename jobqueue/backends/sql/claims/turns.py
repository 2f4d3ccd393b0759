"""The jobs of fair queues in the order of their turns, within the transaction of a claim.

A worker keeps the virtual times of turns in memory. Each claim stores what it took, and reads what other claims have
stored since. It holds a lock for each fair queue, so no two workers serve the same turn from the same figures.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice

from jobqueue.backends.sql.claims.crowd import Group
from jobqueue.clock import SYSTEM
from jobqueue.policy.limits.limits import Allowances, Candidate, Chosen, LimitBook
from jobqueue.policy.turns import NO_VALUE, Head, VirtualTimes, in_turns, missing
from jobqueue.records import Claim
from jobqueue.records.turn import ServedTurn

#: How many further turns a claim finds.
SLICE = 32
#: Among how many jobs a claim looks for some without a stored value: each fourth claim, and after it found some.
FURTHER, _FURTHER_EVERY = 128, 4
#: The most queues and priorities, and the most jobs of a turn, that a claim reads. The most levels that are remembered.
MOST_LEVELS, MOST_OF_TURN, MOST_REMEMBERED = 16, 256, 1_000
#: How much further each read of a claim goes, if the jobs of the last one are not enough.
_WIDTHS = (1, 4, 16, 64)
#: Seconds until the next look, if the turns that a claim read have no job that may start, and others may have one.
_SOON = 0.02
#: Seconds for which the lines of claims are kept, and between two deletions.
KEPT, _PRUNED_EVERY = 60, 1.0
#: The most lines that a worker reads at once. Earlier ones are about turns that are level by now.
MOST_LINES = 2_000

#: The due time and the id of a job, as the database writes them.
Place = tuple[str, str]
#: The keys of the jobs of turns, each with the first of them.
Lines = dict[str, list[Candidate]]


@dataclass
class Look:
    """What a claim reads before it asks for the jobs of turns.

    ``lines`` are what claims stored, with their numbers. ``keys`` are further turns of each group in order, with their
    first jobs if these are due. ``places`` are the first due jobs of all turns. ``further`` are some behind them.
    """

    lines: list[tuple[int, ServedTurn]] = field(default_factory=list)
    keys: dict[Group, list[tuple[str, Head | None]]] = field(default_factory=dict)
    places: list[tuple[str | None, Candidate]] = field(default_factory=list)
    further: dict[Group, list[tuple[Place, str | None, Candidate]]] = field(default_factory=dict)


@dataclass
class Level:
    """What a worker knows of the turns of one queue and priority."""

    times: VirtualTimes
    #: The turns that may have due jobs, with the first ones.
    keys: dict[str, Head] = field(default_factory=dict)
    #: The turns that were passed over by claims that could not look at all.
    passed: set[str] = field(default_factory=set)
    #: The number of the newest known line.
    newest: int = 0
    #: Where the next slices begin, by type.
    after: dict[str, str] = field(default_factory=dict)
    further: dict[str, Place] = field(default_factory=dict)
    looks: int = 0
    #: Whether the last further look found jobs without a stored value.
    has_found: bool = False

    @property
    def goes_further(self) -> bool:
        """Return whether a claim looks for jobs without a stored value behind the first ones."""
        return self.has_found or self.looks % _FURTHER_EVERY == 0


@dataclass
class FairLevel:
    """The jobs of one queue and priority that a claim has read: the places to fill, and the jobs of each turn."""

    times: VirtualTimes
    places: list[Candidate] = field(default_factory=list)
    lines: Lines = field(default_factory=dict)

    def in_order(self, allowances: Allowances, chosen: Chosen) -> Iterator[tuple[str, Candidate]]:
        """Yield the admitted jobs in fair order. What is withheld is counted in ``chosen``."""

        def admits(one: Candidate) -> bool:
            is_admitted = allowances.left(one.queue, one.type, one.keys, 1) > 0
            if not is_admitted:
                chosen.withhold(allowances.wait(one.queue, one.type, one.keys))
            return is_admitted

        return in_turns(self.times, self.lines, admits)

    def admitted(self, allowances: Allowances, most: int) -> int:
        """Return how many jobs would be admitted, up to ``most``."""
        left, count = allowances.copy(), 0
        for _key, one in islice(self.in_order(left, Chosen()), most):
            left.take(one)
            count += 1
        return count

    def missing(self, heads: Mapping[str, Head], allowances: Allowances, most: int) -> Counter[str]:
        """Return how many more jobs of which turns must be read, to know the first ``most`` ones."""
        left = allowances.copy()

        def admits(one: Candidate) -> bool:
            is_admitted = left.left(one.queue, one.type, one.keys, 1) > 0
            if is_admitted:
                left.take(one)
            return is_admitted

        return missing(self.times, self.lines, heads, admits, most)

    def add(self, jobs: Sequence[tuple[str | None, Candidate]]) -> None:
        """Add jobs to their turns."""
        for key, one in jobs:
            line = self.lines.setdefault(key or NO_VALUE, [])
            if one not in line:
                line.append(one)
        for key in {key or NO_VALUE for key, _one in jobs}:
            self.lines[key].sort()


class FairClaims(ABC):
    """Reads the jobs of turns, and stores what claims take from them."""

    def __init__(self) -> None:
        self._levels: dict[tuple[str, int], Level] = {}
        self._pruned_at = 0.0

    def read(
        self,
        groups: Sequence[Group],
        book: LimitBook,
        allowances: Allowances,
        most: int,
        left_out: Collection[str],
        counted: Callable[[Sequence[Candidate]], None],
        chosen: Chosen,
    ) -> dict[tuple[str, int], FairLevel]:
        """Read the jobs that a claim may need, by queue and priority. ``counted`` counts the starts under their rates.

        Levels of a worse priority than that of enough jobs are left out.
        """
        if len(self._levels) >= MOST_REMEMBERED:  # other programs may name any number of queues
            self._levels.clear()  # not in the loop, because ``record`` needs the levels of this claim
        found: dict[tuple[str, int], FairLevel] = {}
        ordered = sorted(groups, key=lambda group: (group.priority, group.queue))
        enough = 0
        for (priority, queue), several in groupby(ordered, key=lambda group: (group.priority, group.queue)):
            if (enough and priority > enough) or len(found) == MOST_LEVELS:
                break
            level = self._level(queue, priority, book)
            reader = _Reader(self, level, list(several), allowances, most, set(left_out), counted)
            reader.is_limited = any(book.of(*group[:2]) for group in reader.groups)
            found[queue, priority] = reader.read(chosen)
            if reader.is_enough:
                enough = priority
        return found

    def _level(self, queue: str, priority: int, book: LimitBook) -> Level:
        level = self._levels.get((queue, priority))
        if level is None:
            options = book.options_of(queue)
            weights = options.weights if options else None
            level = self._levels[queue, priority] = Level(VirtualTimes(weights))
        return level

    def record(self, chosen: Chosen, claims: Sequence[Claim]) -> None:
        """Store what a claim took from turns."""
        counts: dict[tuple[str, int], Counter[str]] = {}
        for claim in claims:
            if claim.id in chosen.turns:
                counts.setdefault((claim.queue, claim.priority), Counter())[chosen.turns[claim.id]] += 1
        lines = [line for place, count in counts.items() for line in self._levels[place].times.lines(*place, count)]
        if lines:
            self.add(lines)
            if SYSTEM.monotonic() - self._pruned_at >= _PRUNED_EVERY:
                self._pruned_at = SYSTEM.monotonic()
                self.prune()

    # What the databases do in their own ways

    @abstractmethod
    def look(self, groups: Sequence[Group], level: Level, most: int) -> Look:
        """Read lines, further turns, and the first jobs of groups of one queue and priority."""

    @abstractmethod
    def first(self, groups: Sequence[Group], most: Mapping[str, int]) -> list[tuple[str | None, Candidate]]:
        """Read the first due jobs of turns, of each at most its number for each group."""

    @abstractmethod
    def keys_of(self, ids: Collection[str]) -> dict[str, str | None]:
        """Return the stored values of jobs by id."""

    @abstractmethod
    def add(self, lines: Sequence[ServedTurn]) -> None:
        """Store what a claim took from turns."""

    @abstractmethod
    def prune(self) -> None:
        """Delete some of the old lines."""


class _Reader:
    """One claim's reading of one queue and priority."""

    def __init__(
        self,
        claims: FairClaims,
        level: Level,
        groups: Sequence[Group],
        allowances: Allowances,
        most: int,
        left_out: set[str],
        counted: Callable[[Sequence[Candidate]], None],
    ) -> None:
        self._claims, self._level, self.groups = claims, level, groups
        self._allowances, self._most, self._left_out, self._counted = allowances, most, left_out, counted
        self._found = FairLevel(level.times)
        self._asked: dict[str, int] = {}
        self._done: set[str] = set()
        self.is_limited = True
        self.is_enough = False

    def read(self, chosen: Chosen) -> FairLevel:
        level, found = self._level, self._found
        self._start()
        for width in _WIDTHS:
            asked = found.missing(self._heads(), self._allowances, self._most * width)
            if self._ask(asked) and width == 1:  # it has the first jobs, and no limit
                self.is_enough = True
                break
            if not found.missing(self._heads(), self._allowances, self._most):
                break
        self.is_enough = self.is_enough or found.admitted(self._allowances, self._most) >= self._most
        if not self.is_enough and found.missing(self._heads(), self._allowances, self._most):
            level.passed |= self._done
            chosen.withhold(_SOON)
        else:
            level.passed.clear()
        return found

    def _heads(self) -> dict[str, Head]:
        """Return the turns that may have more jobs than were read: not those that the last claims passed over."""
        if not (self._done or self._level.passed):
            return self._level.keys
        left = {key: head for key, head in self._level.keys.items() if key not in self._done}
        return {key: head for key, head in left.items() if key not in self._level.passed} or left

    def _start(self) -> None:
        """Read what claims have stored, and which turns there are."""
        level = self._level
        look = self._claims.look(self.groups, level, self._most + len(self._left_out))
        level.looks += 1
        if look.lines or not level.newest:
            level.times.recall(line for _number, line in sorted(look.lines))
            level.newest = max((number for number, _line in look.lines), default=0)
        else:  # all lines were deleted, and their numbers begin again
            level.newest = 0
        for group, keys in look.keys.items():
            for key, head in keys:
                if head is not None:
                    self._found_turn(key, head)
            level.after[group.type] = keys[-1][0] if len(keys) >= SLICE else ""
        self._add(look.places)
        self._found.places = sorted(one for _key, one in look.places if one.id not in self._left_out)
        if look.further:
            level.has_found = False
        for group, rows in look.further.items():
            self._go_on(group, rows)

    def _go_on(self, group: Group, rows: Sequence[tuple[Place, str | None, Candidate]]) -> None:
        """Add the jobs without a stored value among some that are behind the first ones."""
        without = [(key, one) for _place, key, one in rows if key is None]
        self._level.has_found |= bool(without)
        self._add(without)
        if any(self._allowances.left(one.queue, one.type, one.keys, 1) for _key, one in without):
            return  # the next claim finds them again, unless they start
        if len(rows) >= FURTHER:
            self._level.further[group.type] = rows[-1][0]
        else:
            self._level.further.pop(group.type, None)

    def _found_turn(self, key: str, head: Head) -> None:
        known = self._level.keys.get(key)
        self._level.keys[key] = head if known is None else min(known, head)

    def _ask(self, shares: Mapping[str, int]) -> bool:
        """Read more jobs of turns. Return whether there are as many as are missing, without any limit."""
        if not shares:
            return False
        asked = {key: min(self._asked.get(key, 0) + count, MOST_OF_TURN) for key, count in shares.items()}
        found = self._claims.first(self.groups, {key: count + len(self._left_out) for key, count in asked.items()})
        numbers = Counter(key for key, _one in found)
        self._add(found)
        for key, count in asked.items():
            if numbers[key] < count or count == MOST_OF_TURN:
                self._done.add(key)
            if line := self._found.lines.get(key):
                self._level.keys[key] = (line[0].scheduled_at, line[0].id)
            else:
                self._level.keys.pop(key, None)
        self._asked |= asked
        return not (self.is_limited or self._left_out or self._done) and sum(asked.values()) >= self._most

    def _add(self, jobs: Sequence[tuple[str | None, Candidate]]) -> None:
        ours = [(key, one) for key, one in jobs if one.id not in self._left_out]
        if self.is_limited:
            self._counted([one for _key, one in ours])
        self._found.add(ours)
        for key, one in ours:
            self._found_turn(key or NO_VALUE, (one.scheduled_at, one.id))
