"""The floors of an index, and the plan of the looks behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from jobqueue.backends.postgresql.floors.floor import (
    BEGINNING,
    END,
    LONGEST_LOOK,
    SLOW,
    Floor,
    IndexRange,
    Position,
    Section,
)

#: The pause between two looks, in seconds, as long as no floor is needed.
LOOK_EVERY = 0.25
#: The share of the time that looks take where there are floors.
SHARE = 0.04
#: The same for sections of which a wake-up told.
SHARE_OF_TOLD = 0.2
#: How much earlier than told a job may lie, in seconds: clocks differ, and statements take time.
SLACK = 1.0
#: The most time, in seconds, that looks take before one claim.
LOOK_AT_MOST = 0.01


class Look(NamedTuple):
    """A range to look through. Without a section it is the whole order of a key that has no floor."""

    range: IndexRange
    section: Section | None


#: What the looks prefer, in turn.
_TURNS: tuple[Callable[[Section], float], ...] = (
    lambda section: not section.is_open,
    lambda section: -section.until.moment.timestamp(),
    lambda section: section.looked_at,
)


class Floors:
    """The floors of all keys of an index, and the plan of looks behind them.

    There are three kinds of looks, which take turns. The first reads the open sections. The second reads the newest
    sections, where the jobs of late transactions appear. The third reads the sections that were not read for the
    longest time. The first two begin with the sections that wake-ups named. The third doesn't, so that many wake-ups
    never keep the other sections from being read.
    """

    def __init__(self, keys: Iterable[int], every: float = LOOK_EVERY) -> None:
        self._every = every
        self._floors = {key: Floor(key) for key in keys}
        self._looked_at = float("-inf")
        self._look_at = float("-inf")
        self._looks = 0
        self._spent = 0.0
        self._is_told = False
        self._idle_since = float("inf")

    @property
    def are_up(self) -> bool:
        """Return whether some claims begin elsewhere than at the beginning."""
        return any(floor.sections for floor in self._floors.values())

    @property
    def are_wanted(self) -> bool:
        """Return whether to tell them what claims reach."""
        return any(floor.is_wanted for floor in self._floors.values())

    def ranges(self) -> list[IndexRange]:
        """Return what a claim reads, in order."""
        return [one for floor in self._floors.values() for one in floor.ranges()]

    def reached(self, began: float, positions: Mapping[int, Position]) -> None:
        """Note how far a claim has emptied the order of some keys."""
        for key, position in positions.items():
            if self._floors[key].is_wanted:
                self._floors[key].reached(began, position)

    # Looks

    def budget(self, now: float) -> float:
        """Return for how many seconds to look now."""
        if now < self._look_at:
            return 0.0
        return max(SLOW / 10, min(LOOK_AT_MOST, self._share * (now - self._looked_at)))

    def told_of(self, since: float) -> None:
        """Look soon through all sections from a moment on, in seconds of the epoch. Jobs were committed there late."""
        for section in self._sections():
            if section.until.moment.timestamp() >= since - SLACK:
                section.is_told = self._is_told = True
        if self._is_told:
            self._look_at = min(self._look_at, self._looked_at + self._spent / SHARE_OF_TOLD)

    @property
    def _share(self) -> float:
        return SHARE_OF_TOLD if self._is_told else SHARE

    def next_looks(self) -> list[Look]:
        """Return the ranges to look through in one statement: what takes no longer than one section may."""
        looks = [
            Look(IndexRange(key, BEGINNING, END), None) for key, floor in self._floors.items() if not floor.sections
        ]
        left = LONGEST_LOOK
        for key, section in self._in_turn():
            left -= LONGEST_LOOK if section.seconds is None else section.seconds
            if left < 0 and any(look.section for look in looks):
                break
            looks.append(Look(IndexRange(key, section.since, section.until), section))
        self._looks += 1
        return looks

    def _in_turn(self) -> list[tuple[int, Section]]:
        turn = _TURNS[self._looks % len(_TURNS)]

        def place(one: tuple[int, Section]) -> tuple[bool, float]:
            section = one[1]
            if section.is_told and turn is not _TURNS[-1]:
                return False, section.until.moment.timestamp()
            return True, turn(section)

        return sorted(((key, one) for key, floor in self._floors.items() for one in floor.sections), key=place)

    def looked(self, looks: Sequence[Look], results: Sequence[tuple[bool, float]], now: float) -> None:
        """Note what looks found, and how long each took."""
        for look, (is_open, seconds) in zip(looks, results, strict=True):
            floor = self._floors[look.range.key]
            if look.section is None:
                floor.met(seconds)
            else:
                floor.looked(look.section, seconds, now, is_open=is_open)
        self._spent = sum(seconds for _found, seconds in results)
        self._is_told = self._is_told and any(one.is_told for one in self._sections())
        self._looked_at = now
        self._look_at = now + max(self._spent / self._share, 0.0 if self.are_wanted else self._every)

    def has_unseen(self, now: float, *, found_nothing: bool) -> bool:
        """Return whether a section was not looked through since claims find nothing."""
        self._idle_since = min(self._idle_since, now) if found_nothing else float("inf")
        unseen = (one for one in self._sections() if one.is_told or one.looked_at < self._idle_since)
        return found_nothing and next(unseen, None) is not None

    def _sections(self) -> Iterator[Section]:
        return (section for floor in self._floors.values() for section in floor.sections)
