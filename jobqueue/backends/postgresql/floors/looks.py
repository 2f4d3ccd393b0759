"""Looks behind floors: short statements between claims that find what the claims would pass by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

from jobqueue.backends.postgresql.floors.floor import BEGINNING, END, IndexRange, Position
from jobqueue.backends.postgresql.floors.floors import LOOK_EVERY, Floors, Look
from jobqueue.backends.postgresql.session import PostgresSession
from jobqueue.clock import SYSTEM, to_text
from jobqueue.records import Claim, Cycle

PRIORITIES = range(1, 11)
#: A range without rows, whose answer says when the look began.
_NOWHERE = IndexRange(0, BEGINNING, BEGINNING)
#: When an idle worker goes on to look behind the floors.
_SOON = timedelta(milliseconds=50)


def range_values(ranges: Sequence[IndexRange]) -> dict[str, Any]:
    """Return the parameters that name ranges."""
    return {
        "keys": [one.key for one in ranges],
        "since": [_moment(one.since) for one in ranges],
        "since_ids": [one.since.id for one in ranges],
        "until": [_moment(one.until) for one in ranges],
        "until_ids": [one.until.id for one in ranges],
    }


def _moment(position: Position) -> str:
    if position == BEGINNING:
        return "-infinity"
    return "infinity" if position == END else to_text(position.moment)


def left_behind(claims: Sequence[Claim], now: Position, *, is_full: bool) -> Mapping[int, Position]:
    """Return how far a claim has emptied each priority. A full claim came no further than its last job."""
    if not is_full:
        return dict.fromkeys(PRIORITIES, now)
    last = claims[-1]
    return dict.fromkeys(range(1, last.priority), now) | {last.priority: Position(last.scheduled_at, last.id)}


class Looks:
    """Looks behind the floors of an index, as often as their share of the time allows."""

    def __init__(
        self, session: PostgresSession, keys: Iterable[int], every: float = LOOK_EVERY, *, are_of_past: bool = False
    ) -> None:
        """Take the keys of an index. ``are_of_past`` says that looks find all rows up to now, and none behind that."""
        self._session = session
        self._are_of_past = are_of_past
        self.floors = Floors(keys, every)

    @property
    def are_due(self) -> bool:
        """Return whether it is time to look."""
        return self.floors.budget(SYSTEM.monotonic()) > 0

    def look(self, statement: str, given: Mapping[str, Any] = MappingProxyType({})) -> None:
        """Look through what is due, in one statement after another."""
        began = now = SYSTEM.monotonic()
        budget = self.floors.budget(began)
        while budget > now - began:
            looks = self.floors.next_looks()
            values = range_values([_NOWHERE, *(look.range for look in looks)])
            now = self._noted(looks, self._session.run(statement, {**given, **values}))
            if not self.floors.are_up:
                return

    def told(self, cycle: Cycle) -> Cycle:
        """Set when to ask again after a cycle that found nothing, if something may be left behind a floor."""
        found_nothing = not cycle.claims
        if not self.floors.has_unseen(SYSTEM.monotonic(), found_nothing=found_nothing):
            return cycle
        soon = _SOON if cycle.next_due is None else min(cycle.next_due, _SOON)
        return replace(cycle, next_due=soon, is_partial=True)

    def _noted(self, looks: Sequence[Look], rows: Sequence[tuple[Any, ...]]) -> float:
        (_place, _found, before), *answers = sorted(rows)
        began = SYSTEM.monotonic() - (answers[-1][2] - before if answers else 0.0)
        if self._are_of_past:
            empty = [look for look, (_, found, _) in zip(looks, answers, strict=True) if not found]
            self._reached(began, self._moment_of(before), empty)
        results = []
        for _place, found, after in answers:
            results.append((found, after - before))
            before = after
        now = SYSTEM.monotonic()
        self.floors.looked(looks, results, now)
        return now

    def _moment_of(self, seconds: float) -> datetime:
        clock = self._session.clock
        return clock.now() if clock else datetime.fromtimestamp(seconds, UTC)

    def _reached(self, began: float, moment: datetime, empty: Sequence[Look]) -> None:
        """Note which orders are empty up to a moment, so that their floors rise without a sweep.

        Sweeps are rare. Until the second one, each look would pass all dead rows.
        """
        self.floors.reached(began, {look.range.key: Position(moment) for look in empty if look.section is None})
