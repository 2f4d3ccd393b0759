"""The choice of jobs of ordered queues, within the transaction of a claim.

The state of a lane is derived from its rows: those that run, those that are due, and in a strict lane also those that
wait and the dead letters. No two workers decide about one lane at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from jobqueue import foreign_json
from jobqueue.backends.sql.claims.crowd import Group
from jobqueue.backends.sql.session import Session
from jobqueue.clock import SYSTEM
from jobqueue.policy.lanes import Lane, LaneJob, in_places, lane_of
from jobqueue.policy.limits.limits import Candidate, LimitBook
from jobqueue.records import Hold, QueueOptions, Settlement

#: The most lanes at which one claim looks.
MOST_LANES = 64
#: How many jobs of a lane, and of all lanes, a claim reads if limits withhold the first ones.
MOST_OF_LANE, MOST_READ = 500, 4_000
#: How many waiting jobs that have become due one claim moves to the due ones of their lanes.
MOST_MOVED = 500
#: How many jobs one claim searches for some that have no place in a lane, and how many of these get one.
MOST_SEARCHED, MOST_PLACED = 500, 100
#: Seconds between two searches that find nothing: after all jobs were searched, and before.
_SEARCHED_EVERY, _CONTINUED_EVERY = 0.1, 0.02
#: Seconds between two moves of jobs that have become due.
_MOVED_EVERY = 0.02

#: A queue, and the name of one of its lanes.
Name = tuple[str, str]
#: Returns the queues whose limits admit too few of these jobs, and may admit others.
ShortQueues = Callable[[Sequence[Candidate]], Collection[str]]


class Unplaced(NamedTuple):
    """A job of an ordered queue without a place in a lane: another program stored it, or its queue had no order."""

    id: str
    queue: str
    payload: str
    tenant: str | None


@dataclass(frozen=True)
class LaneChoice:
    """The jobs of lanes that may start, by id, each with the one whose place in the order of claims it takes.

    ``withheld`` is the number of lanes that hold jobs. ``is_contended`` means that another worker decides about some
    lanes at this moment, and ``is_partial`` that others were not looked at yet.
    """

    jobs: Mapping[str, tuple[Candidate, Candidate]] = field(default_factory=dict)
    withheld: int = 0
    is_contended: bool = False
    is_partial: bool = False


class _Heads:
    """The first due jobs of the lanes that a claim has read."""

    def __init__(self, kinds: Collection[tuple[str, str]], left_out: Collection[str]) -> None:
        self._kinds, self._left_out = kinds, left_out
        self._lanes: dict[Name, Lane] = {}
        self._jobs: dict[Name, list[LaneJob]] = {}

    def read(self, lanes: Mapping[Name, Lane]) -> None:
        """Take lanes in. They replace what was read of them before."""
        for name, lane in lanes.items():
            lane.due = [one for one in lane.due if one.id not in self._left_out]
            self._lanes[name] = lane
            self._jobs[name] = [one for one in lane.may_start() if (one.queue, one.type) in self._kinds]

    def longer(self, window: int, short_queues: ShortQueues) -> list[Name]:
        """Return the lanes in which more jobs may start together than the ``window`` of due ones that was read.

        These are of the queues in which limits admit too few of what was read.
        """
        full = [
            name
            for name, lane in self._lanes.items()
            if len(lane.due) >= window and len(lane.may_start()) == len(lane.due) and lane.due[-1].parallel
        ]
        queues = short_queues([job for job, _place in self.candidates().values()]) if full else ()
        return [name for name in full if name[0] in queues]

    def candidates(self) -> dict[str, tuple[Candidate, Candidate]]:
        """Return the jobs that may start, by id, each with the one whose place in the order of claims it takes."""
        return {job.id: (job, place) for jobs in self._jobs.values() for job, place in in_places(jobs)}

    @property
    def withheld(self) -> int:
        """Return how many lanes hold jobs."""
        return sum(len(self._jobs[name]) < len(lane.due) for name, lane in self._lanes.items())


class LaneClaims(ABC):
    """Finds the jobs of lanes that may start."""

    def __init__(self, session: Session) -> None:
        self._session = session
        #: What the transaction will complete after the choice. These jobs run no longer.
        self.completions: Sequence[Settlement] = ()
        #: The lane of each queue after which the next claim continues, if one claim can't look at all.
        self._after: dict[str, str] = {}
        #: Where the search for jobs without a place continues, by group.
        self._searched: dict[Group, tuple[object, str]] = {}
        self._search_at = 0.0
        #: When jobs that have become due are moved again, and the queues in which that was done last.
        self._move_at, self._moved = 0.0, list[str]()
        #: The queues of which jobs were taken in the current round through their lanes.
        self._useful: set[str] = set()

    def choose(
        self, groups: Sequence[Group], book: LimitBook, most: int, left_out: Collection[str], short_queues: ShortQueues
    ) -> LaneChoice:
        """Choose the jobs that may start. ``groups`` are those of ordered queues whose limits are locked."""
        queues = {one.queue: options for one in groups if (options := book.options_of(one.queue)) is not None}
        if not queues:
            return LaneChoice()
        if SYSTEM.monotonic() >= self._search_at:
            self._place(groups, queues)
        self._move_due(sorted(queues))
        lanes, partial = self._lanes(sorted(queues))
        locked = sorted(lane for lane, is_locked in lanes.items() if is_locked)
        strict = {one for one in locked if queues[one[0]].strict}
        kinds = {(one.queue, one.type) for one in groups}
        window = max(2, min(most, -(-4 * most // max(1, len(locked)))))
        heads = _Heads(kinds, left_out)
        if locked:
            heads.read(self.states(locked, strict, len(left_out) + window))
        if wide := heads.longer(window, short_queues):
            further = max(2 * window, min(MOST_OF_LANE, MOST_READ // len(wide)))
            heads.read(self.states(wide, strict.intersection(wide), len(left_out) + further))
        found = heads.candidates()
        # Before a worker sleeps, it searches for what has no place yet, and looks again if it finds any.
        is_contended = len(locked) < len(lanes) or (not found and self._place(groups, queues))
        return LaneChoice(found, heads.withheld, is_contended, bool(partial))

    def _move_due(self, queues: Sequence[str]) -> None:
        """Move waiting jobs that have become due, unless that was done just now."""
        now = (self._session.clock or SYSTEM).monotonic()
        if now >= self._move_at or self._moved != list(queues):
            self._move_at, self._moved = now + _MOVED_EVERY, list(queues)
            self.move_due(queues, MOST_MOVED)

    def _lanes(self, queues: Sequence[str]) -> tuple[dict[Name, bool], set[str]]:
        """Lock lanes with due jobs. Return whether each is locked, and the queues of which others should be looked at.

        The next claim continues behind the last lane. After a round in which jobs were taken, it begins another one.
        """
        most = max(1, MOST_LANES // len(queues))
        lanes = self.lock_next({queue: self._after.get(queue, "") for queue in queues}, most)
        found: dict[str, list[str]] = defaultdict(list)
        for queue, lane in lanes:
            found[queue].append(lane)
        partial = set()
        for queue in queues:
            if len(found[queue]) == most:
                self._after[queue] = found[queue][-1]
                partial.add(queue)
            else:
                if self._after.pop(queue, "") and queue in self._useful:
                    partial.add(queue)
                self._useful.discard(queue)
        return lanes, partial

    def took(self, queues: Iterable[str]) -> None:
        """Note the queues of claimed jobs."""
        self._useful |= self._after.keys() & set(queues)

    # Jobs without a place

    def _place(self, groups: Sequence[Group], queues: Mapping[str, QueueOptions]) -> bool:
        """Give jobs of ordered queues that have no place one at the end of their lanes. Return whether any got one.

        A search continues where the last one ended.
        """
        unplaced: list[Unplaced] = []
        placed = 0
        for group in groups:
            jobs, last = self.unplaced(group, self._searched.get(group), MOST_SEARCHED)
            unplaced += jobs[:MOST_PLACED]
            if last is None or len(jobs) > MOST_PLACED:
                self._searched.pop(group, None)
            else:
                self._searched[group] = last
        if len(self._searched) > len(groups):
            self._searched = {group: self._searched[group] for group in groups if group in self._searched}
        if unplaced:
            lanes: dict[Name, list[str]] = defaultdict(list)
            for one in unplaced:
                lanes[one.queue, self._lane(one, queues[one.queue])].append(one.id)
            placed = self.place(lanes)
        rest = 0.0 if unplaced else _CONTINUED_EVERY if self._searched else _SEARCHED_EVERY
        self._search_at = SYSTEM.monotonic() + rest
        return placed > 0

    @staticmethod
    def _lane(one: Unplaced, options: QueueOptions) -> str:
        payload = foreign_json.read(one.payload) if isinstance(options.ordered, str) else None
        return lane_of(options.ordered, payload, one.tenant)

    # What the databases do in their own ways

    @abstractmethod
    def unplaced(
        self, group: Group, after: tuple[object, str] | None, most: int
    ) -> tuple[list[Unplaced], tuple[object, str] | None]:
        """Search the next ``most`` due jobs of a group for those without a place.

        Return them, and the last of the searched jobs, or ``None`` at the end of the group.
        """

    @abstractmethod
    def place(self, lanes: Mapping[Name, Sequence[str]]) -> int:
        """Give jobs places at the ends of lanes, except of lanes in which a producer has not committed yet.

        Return how many jobs got one.
        """

    @abstractmethod
    def move_due(self, queues: Sequence[str], most: int) -> None:
        """Move waiting jobs that have become due to the due ones of their lanes."""

    @abstractmethod
    def next_lanes(self, after: Mapping[str, str], most: int, hold: Hold = Hold.IS_DUE) -> list[Name]:
        """Return the next lanes of each queue that have jobs that are due, wait, or are dead letters."""

    @abstractmethod
    def lock_next(self, after: Mapping[str, str], most: int) -> dict[Name, bool]:
        """Try to be the only worker that decides about the next lanes with due jobs, until the transaction ends.

        Return them in order, each with whether it is locked now.
        """

    @abstractmethod
    def states(self, lanes: Sequence[Name], strict: Collection[Name], most: int) -> dict[Name, Lane]:
        """Read the state of lanes, of the due jobs of each at most ``most``. The strict ones may be held by others."""

    @abstractmethod
    def running(self, lanes: Sequence[Name]) -> dict[Name, list[str]]:
        """Return the ids of the running jobs of lanes."""

    @abstractmethod
    def depths(self, lanes: Sequence[Name], most: int) -> dict[Name, int]:
        """Count the queued jobs of lanes, of each up to about ``most``."""
