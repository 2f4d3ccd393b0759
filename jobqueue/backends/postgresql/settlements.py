"""The storing of settlements on Postgres: all completions in one statement, all others in another."""

from __future__ import annotations

import json
from collections.abc import Sequence

from jobqueue.backends.postgresql import statements, values
from jobqueue.backends.postgresql.session import PostgresSession
from jobqueue.backends.sql.settlements import Settlements, settlement_values
from jobqueue.durations import in_seconds
from jobqueue.records import ClaimKey, Settlement
from jobqueue.states import Move


class PostgresSettlements(Settlements):
    """Writes settlements, which are sent as JSON, so that one statement fits any number."""

    _session: PostgresSession

    def write(self, settlements: Sequence[Settlement]) -> set[ClaimKey]:
        accepted: set[ClaimKey] = set()
        if len(settlements) > 1:
            self._session.run_planned(statements.LOCK, {"ids": [one.id for one in settlements]})
        completions = [one for one in settlements if one.move is Move.COMPLETE]
        others = [one for one in settlements if one.move is not Move.COMPLETE]
        if completions:
            given = {"completions": values.completions(completions)}
            accepted.update((row[0], row[1]) for row in self._session.run_planned(statements.COMPLETE, given))
        if others:
            rows = [settlement_values(one) | {"delay": in_seconds(one.delay)} for one in others]
            given = {"settlements": json.dumps(rows)}
            accepted.update(self._session.run(statements.SETTLE, given))
        return accepted
