"""Metrics on Postgres: in a worker, samples of the depth begin at the floors of its claims and sweeps."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from jobqueue.backends.postgresql.floors import statements
from jobqueue.backends.postgresql.floors.floors import Floors
from jobqueue.backends.postgresql.floors.looks import range_values
from jobqueue.backends.sql.ports.metrics import SqlMetrics
from jobqueue.policy.stretches import Name
from jobqueue.records.metric import COUNTED_TO


class PostgresMetrics(SqlMetrics):
    """Counts the first ``COUNTED_TO`` jobs of each priority where dead rows lie before them, and of all otherwise."""

    #: The floors of this process's claims and sweeps, if it is a worker's.
    queued: Floors | None = None
    leased: Floors | None = None

    def _kinds(self, most: int) -> int:
        return 1 if self.queued and self.queued.are_up else super()._kinds(most)

    def _waiting(self, cap: int, most: int) -> dict[Name, tuple[int, int, datetime | None]]:
        if not (self.queued and self.queued.are_up):
            return super()._waiting(cap, most)
        given = {"now": self._given(self._session.now()), "limit": COUNTED_TO + 1}
        return self._as_waiting(self._found(statements.COUNT_QUEUED, given | range_values(self.queued.ranges())), most)

    def _found_running(self, given: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        if not (self.leased and self.leased.are_up):
            return super()._found_running(given)
        return self._found(statements.COUNT_RUNNING, {**given, **range_values(self.leased.ranges())})
