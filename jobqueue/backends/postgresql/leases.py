"""Leases on Postgres."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta

from jobqueue.backends.base import Judge
from jobqueue.backends.postgresql import statements
from jobqueue.backends.postgresql.session import PostgresSession
from jobqueue.backends.sql.leases import StoredLeases
from jobqueue.records import Claim, Extension, Sweep


class PostgresLeases(StoredLeases):
    """Extends and ends leases by the database's clock, past rows that other sessions have locked."""

    _session: PostgresSession

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
            rows = self._session.run(statements.RAN_OUT, {"limit": limit + len(left_out)})
            overdue = self.ran_out([row for row in rows if row[0] not in left_out])
            return Sweep(tuple(self.end_overdue(overdue, judge)), self.end_expired(limit))

    def expire(self, limit: int) -> list[str]:
        return [row[0] for row in self._session.run(statements.EXPIRE, {"limit": limit})]
