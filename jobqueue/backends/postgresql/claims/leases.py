"""Leases on Postgres."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from jobqueue.backends.base import Judge
from jobqueue.backends.postgresql import statements
from jobqueue.backends.postgresql.floors import statements as floor_statements
from jobqueue.backends.postgresql.floors.floor import Position
from jobqueue.backends.postgresql.floors.floors import Floors
from jobqueue.backends.postgresql.floors.looks import Looks, range_values
from jobqueue.backends.postgresql.session import PostgresSession
from jobqueue.backends.sql.claims.leases import StoredLeases
from jobqueue.backends.sql.obstacles import Obstacles
from jobqueue.backends.sql.settlements import Settlements
from jobqueue.clock import SYSTEM
from jobqueue.records import Claim, Extension, Sweep

#: The key of an index that has one order.
ONLY = 1
#: The pause between two looks, in seconds, as long as no floor is needed.
LOOK_EVERY = 5.0


class PostgresLeases(StoredLeases):
    """Renews and ends leases by the database's clock. Rows that other sessions have locked are skipped."""

    _session: PostgresSession

    def __init__(self, session: PostgresSession, settlements: Settlements, obstacles: Obstacles) -> None:
        super().__init__(session, settlements, obstacles)
        self._leased = Looks(session, [ONLY], every=LOOK_EVERY, are_of_past=True)
        self._expiring = Looks(session, [ONLY], every=LOOK_EVERY, are_of_past=True)

    def renew(self, claims: Sequence[Claim], lease: timedelta) -> Extension:
        rows = json.dumps([{"id": one.id, "fence": one.fence, "owner": one.owner} for one in claims])
        answer = self._session.run(statements.EXTEND, {"claims": rows, "lease": lease.total_seconds()})
        found = {(job_id, fence): (cancelled, extended) for job_id, fence, cancelled, extended in answer}
        held = [(one, found.get((one.id, one.fence))) for one in claims]
        return Extension(
            lost=tuple(one for one, state in held if state is None),
            skipped=tuple(one for one, state in held if state and not state[1]),
            cancelled=tuple(one for one, state in held if state and state[0]),
        )

    def sweep(self, judge: Judge, limit: int) -> Sweep:
        with self._session.reporting(), self._session.write_transaction():
            self._obstacles.forget()
            left_out = self._obstacles.left_out
            rows = self._first(
                self._leased, statements.RAN_OUT, floor_statements.RAN_OUT_FROM_FLOORS, limit + len(left_out)
            )
            overdue = self.ran_out([row for row in rows if row[0] not in left_out])
            return Sweep(tuple(self.end_overdue(overdue, judge)), self.end_expired(limit))

    def held_rows(self, owner: str, limit: int) -> list[tuple[Any, ...]]:
        return self._session.run(statements.HELD_ROWS, {"owner": owner, "limit": limit})

    def expire(self, limit: int) -> list[str]:
        with self._session.index_order(limit):
            rows = self._first(self._expiring, statements.EXPIRE, floor_statements.EXPIRE_FROM_FLOORS, limit)
        return [row[0] for row in rows]

    # Floors

    @property
    def floors(self) -> Floors:
        """The floors of the order of leases."""
        return self._leased.floors

    def look(self) -> None:
        """Look behind the floors that sweeps begin at, if it is time."""
        self._leased.look(floor_statements.LOOK_AT_LEASED)
        if self._expiring.are_due:
            # When few jobs wait, statistics make other indexes of queued jobs look as good, but those have dead rows.
            with self._session.index_order(1):
                self._expiring.look(floor_statements.LOOK_AT_EXPIRING)

    def _first(self, looks: Looks, plain: str, from_floors: str, limit: int) -> list[tuple[Any, ...]]:
        """Run a statement on the first rows of an index, up to a limit."""
        floors, began = looks.floors, SYSTEM.monotonic()
        now = Position(self._session.now()) if floors.are_wanted else None
        if floors.are_up:
            rows = self._session.run(from_floors, {"limit": limit} | range_values(floors.ranges()))
        else:
            rows = self._session.run(plain, {"limit": limit})
        if now is not None and len(rows) < limit:
            floors.reached(began, {ONLY: now})
        return rows
