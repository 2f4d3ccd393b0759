"""Floors: where a claim begins to read the order, so that it passes no dead rows again.

While a transaction holds an old snapshot, Postgres can't remove the index entries of jobs that were claimed. All of
them lie at the head of the order, and each claim would read them again. A floor is the place before which no job was
found. What lies behind it is looked through in sections, a short one at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

#: A walk to the first job that takes longer than this, in seconds, calls for a floor: some 10,000 dead rows. A floor
#: behind which everything is read in a quarter of that is given up.
SLOW = 0.001
#: A section that takes longer is halved. It is how long a look may keep a claim waiting.
LONGEST_LOOK = 0.002
#: How long, in seconds, a place must have been reached before claims begin there. Short transactions commit meanwhile.
LAG = 0.25
_FIRST_STEP = timedelta(minutes=1)


class Position(NamedTuple):
    """A place in the order of one priority, or in another index."""

    moment: datetime
    id: str = ""


BEGINNING = Position(datetime.min.replace(tzinfo=UTC))
END = Position(datetime.max.replace(tzinfo=UTC))


class IndexRange(NamedTuple):
    """A part of an index: from ``since`` up to, but without, ``until``."""

    key: int
    since: Position
    until: Position


@dataclass(slots=True, eq=False)
class Section:
    """A range behind a floor: how long the last look took, and whether it found a job. Claims read open sections.

    A section is told of if a wake-up said since the last look that a transaction has committed late.
    """

    since: Position
    until: Position
    seconds: float | None = None
    is_open: bool = False
    is_told: bool = False
    looked_at: float = 0.0


class Floor:
    """The floor of one key: of a priority in the order of claims, for example."""

    def __init__(self, key: int) -> None:
        self.key = key
        self.start = BEGINNING
        self.sections: list[Section] = []
        self._slow_looks = 0
        self._trail: deque[tuple[float, Position]] = deque()

    @property
    def is_wanted(self) -> bool:
        """Return whether two looks in a row were slow, or there is a floor already."""
        return self._slow_looks > 1 or bool(self.sections)

    def ranges(self) -> Iterator[IndexRange]:
        """Return what a claim reads, in order: the open sections, and everything from the floor on."""
        for section in self.sections:
            if section.is_open:
                yield IndexRange(self.key, section.since, section.until)
        yield IndexRange(self.key, self.start, END)

    def reached(self, began: float, position: Position) -> None:
        """Note that a claim, begun at a moment of this process's clock, left no job before a position.

        The floor rises to what was reached some time before, and was read once more by this claim. So it finds jobs of
        transactions that committed late, and jobs that another session had locked.
        """
        reached = None
        while self._trail and self._trail[0][0] <= began - LAG:
            reached = self._trail.popleft()[1]
        if reached is not None and self.start < (lowest := min(reached, position)):
            self._raise(lowest)
        if not self._trail or self._trail[-1][0] <= began - LAG / 5:
            self._trail.append((began, position))

    def _raise(self, start: Position) -> None:
        newest = self.sections[-1] if self.sections else None
        if newest is not None and (newest.seconds or 0.0) < LONGEST_LOOK / 2:
            newest.until = start
        else:
            self.sections.append(Section(self.start, start))
        self.start = start

    def met(self, seconds: float) -> None:
        """Note how long a walk from the beginning to the first job took."""
        self._slow_looks = 2 if seconds > 10 * SLOW else self._slow_looks + 1 if seconds > SLOW else 0
        if not self.is_wanted:
            self._trail.clear()

    def looked(self, section: Section, seconds: float, now: float, *, is_open: bool) -> None:
        """Note what a look found. Halve a section that took too long, or join it with a quick one before it."""
        if section not in self.sections:  # just joined with another
            return
        section.seconds, section.is_open, section.is_told, section.looked_at = seconds, is_open, False, now
        place = self.sections.index(section)
        if seconds > LONGEST_LOOK:
            self.sections[place : place + 1] = self._halved(section)
        elif place and not is_open and _are_quick(self.sections[place - 1], section):
            before = self.sections.pop(place - 1)
            section.since, section.seconds = before.since, seconds + (before.seconds or 0.0)
            section.looked_at, section.is_told = before.looked_at, before.is_told
        if len(self.sections) == 1 and not section.is_open and (section.seconds or 0.0) < SLOW / 4:
            self._give_up()

    def _halved(self, section: Section) -> list[Section]:
        since, until = section.since.moment, section.until.moment
        if section.since == BEGINNING:
            step = max(_FIRST_STEP, 2 * (self.start.moment - until))
            middle = until - step if until - since > step else since
        else:
            middle = since + (until - since) / 2
        if not since < middle < until:
            return [section]
        parts = ((section.since, Position(middle)), (Position(middle), section.until))
        return [Section(*part, is_open=section.is_open, looked_at=section.looked_at) for part in parts]

    def _give_up(self) -> None:
        self.start, self.sections, self._slow_looks = BEGINNING, [], 0
        self._trail.clear()


def _are_quick(before: Section, section: Section) -> bool:
    if before.is_open or before.seconds is None or section.seconds is None:
        return False
    return before.seconds + section.seconds < LONGEST_LOOK / 2
