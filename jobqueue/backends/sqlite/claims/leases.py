"""Leases on SQLite, where an atomic handler holds the only write lock while it works."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from jobqueue.backends.base import Judge
from jobqueue.backends.sql.claims.leases import StoredLeases
from jobqueue.backends.sql.obstacles import Obstacles
from jobqueue.backends.sql.settlements import Settlements
from jobqueue.backends.sqlite import statements
from jobqueue.backends.sqlite.session import SqliteSession
from jobqueue.clock import SYSTEM, to_text
from jobqueue.records import Claim, Extension, OverdueLease, Sweep


class SqliteLeases(StoredLeases):
    """Ends a lease only after two sweeps have found it expired."""

    second_look = timedelta(seconds=1)
    _session: SqliteSession

    def __init__(self, session: SqliteSession, settlements: Settlements, obstacles: Obstacles) -> None:
        super().__init__(session, settlements, obstacles)
        self._suspects: dict[tuple[str, int, str], float] = {}

    def renew(self, claims: Sequence[Claim], lease: timedelta) -> Extension:
        def work() -> Extension:
            lost, cancelled = [], []
            with self._session.write_transaction(), self._session.driver() as driver:
                until = to_text(self._session.now() + lease)
                for claim in claims:
                    values = {"id": claim.id, "fence": claim.fence, "owner": claim.owner, "until": until}
                    held = driver.execute(statements.EXTEND, values).fetchall()
                    if not held:
                        lost.append(claim)
                    elif held[0][0] is not None:
                        cancelled.append(claim)
            return Extension(lost=tuple(lost), cancelled=tuple(cancelled))

        return self._session.retrying(work)

    def sweep(self, judge: Judge, limit: int) -> Sweep:
        def work() -> Sweep:
            with self._session.write_transaction(), self._session.driver() as driver:
                now, left_out = to_text(self._session.now()), self._obstacles.left_out
                self._obstacles.forget()
                expired = self.end_expired(limit)
                rows = driver.execute(statements.RAN_OUT, (now, limit + len(left_out))).fetchall()
                rows = [row for row in rows if row[0] not in left_out]
                ended = self.end_overdue(self._seen_twice(rows), judge)
            return Sweep(tuple(ended), expired, look_again=len(ended) < len(rows))

        with self._session.reporting():
            return self._session.retrying(work)

    def held_rows(self, owner: str, limit: int) -> list[tuple[Any, ...]]:
        with self._session.driver() as driver:
            return driver.execute(statements.HELD_ROWS, (owner, limit)).fetchall()

    def expire(self, limit: int) -> list[str]:
        with self._session.driver() as driver:
            given = {"now": to_text(self._session.now()), "limit": limit}
            return [row[0] for row in driver.execute(statements.EXPIRE, given)]

    def _seen_twice(self, rows: Sequence[tuple[Any, ...]]) -> list[OverdueLease]:
        """Return the leases that an earlier sweep, at least ``second_look`` ago, has found expired too.

        An atomic handler holds the only write lock while it works, so its worker can't renew leases meanwhile. A lease
        that one sweep finds expired may therefore belong to a live worker that waits for the lock. Between two sweeps,
        that worker can get it.
        """
        moment = (self._session.clock or SYSTEM).monotonic()
        looks = {(row[0], row[2], row[-1]): row for row in rows}
        self._suspects = {look: self._suspects.get(look, moment) for look in looks}
        seen = self.second_look.total_seconds()
        return self.ran_out([row for look, row in looks.items() if moment - self._suspects[look] >= seen])
