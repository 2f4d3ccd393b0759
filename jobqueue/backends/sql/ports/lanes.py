"""Lanes in a table, with the statements by which claims read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from jobqueue.backends.ports.lanes import MOST_COUNTED, Lanes
from jobqueue.backends.sql.claims.lanes import LaneClaims, Name
from jobqueue.backends.sql.session import Session
from jobqueue.clock import from_text
from jobqueue.policy.lanes import Lane, record_of
from jobqueue.policy.limits.limits import LimitBook
from jobqueue.records import Hold, JobRecord, LaneHold, LaneRecord

#: How many jobs of a lane are read to find what holds one.
_MOST_READ = 1_000


class SqlLanes(Lanes):
    """Reads lanes without locks."""

    def __init__(self, session: Session, claims: LaneClaims) -> None:
        self._session = session
        self._claims = claims

    def all(self, book: LimitBook, queues: Sequence[str], most: int = 100) -> list[LaneRecord]:
        ordered = {queue: options for queue in queues if (options := book.options_of(queue)) and options.ordered}
        if not ordered:
            return []
        with self._session.reading():
            names: set[Name] = set()
            for hold in (Hold.IS_DUE, Hold.WAITS, Hold.IS_DEAD):
                asked = {queue: "" for queue, one in ordered.items() if one.strict or hold is not Hold.IS_DEAD}
                names |= set(self._claims.next_lanes(asked, most, hold)) if asked else set()
            shown = [name for queue in sorted(ordered) for name in sorted(names) if name[0] == queue]
            first = [name for queue in ordered for name in [one for one in shown if one[0] == queue][:most]]
            states = self._states(book, first) if first else {}
            depths = self._claims.depths(first, MOST_COUNTED) if first else {}
            running = self._claims.running(first) if first else {}
        return [
            record_of(name, state, depths[name], running.get(name, ()), self._moved) for name, state in states.items()
        ]

    def hold_of(self, book: LimitBook, job: JobRecord) -> LaneHold | None:
        if not book.is_ordered(job.queue) or not job.lane or job.lane_position is None:
            return None
        name = (job.queue, job.lane)
        with self._session.reading():
            state = self._states(book, [name])[name]
        hold = state.hold_of((job.lane_position, job.id), job.parallel)
        return hold and self._moved(hold)

    def _states(self, book: LimitBook, names: Sequence[Name]) -> dict[Name, Lane]:
        strict = {name for name in names if (options := book.options_of(name[0])) and options.strict}
        return self._claims.states(names, strict, _MOST_READ)

    @staticmethod
    def _moved(hold: LaneHold) -> LaneHold:
        """Return a hold whose moment is one: each database has its own form of it."""
        due_at: object = hold.due_at
        if isinstance(due_at, str):
            return replace(hold, due_at=from_text(due_at))
        if isinstance(due_at, (int, float)):
            return replace(hold, due_at=datetime.fromtimestamp(due_at, UTC))
        return hold
