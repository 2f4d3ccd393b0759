"""The reading of the queue's health from its tables."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

from jobqueue.backends.ports import HealthReader
from jobqueue.backends.sql.ports.statements import health as statements
from jobqueue.backends.sql.session import Session
from jobqueue.clock import SYSTEM
from jobqueue.models import Job
from jobqueue.models.fields import as_utc
from jobqueue.policy.stretches import shared
from jobqueue.records import COUNTED_TO, MOST_GROUPS, DeadJob, DeadLetterCount, LapsedLeases, QuietJob
from jobqueue.records.metric import COUNTED_TOGETHER

#: How many running jobs are looked at.
_RUNNING = 5_000


class SqlHealthReader(HealthReader):
    """Reads ranges of the indexes of dead, queued and running jobs."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def dead_letters(self, cap: int = COUNTED_TO, most: int = MOST_GROUPS) -> list[DeadLetterCount]:
        with self._session.reading(), self._session.index_order(COUNTED_TOGETHER) as soon:
            each = shared(cap, len(self._found(statements.dead_kinds(most))), soon)
            rows = self._counted(each, most)
        return [DeadLetterCount(queue, kind, min(count, each), count > each) for queue, kind, count in rows]

    def critical_dead(self, types: Collection[str], limit: int = 100) -> list[DeadJob]:
        found: list[DeadJob] = []
        with self._session.reading():
            for queue, kind in self._found(statements.dead_kinds(MOST_GROUPS)):
                if kind in types and len(found) < limit:
                    rows = self._found(
                        statements.NEWEST_DEAD, {"queue": queue, "type": kind, "limit": limit - len(found)}
                    )
                    found += [DeadJob(key, kind, queue, died and self._moment(died)) for key, died in rows]
        return found

    def lapsed_leases(self, grace: timedelta, cap: int = COUNTED_TO) -> list[LapsedLeases]:
        with self._session.reading():
            rows = self._found(statements.LAPSED, {"before": self._before(grace), "limit": cap})
            return [LapsedLeases(owner, count, self._moment(until)) for owner, count, until in rows]

    def quiet_jobs(self, silence: timedelta, limit: int = 100) -> list[QuietJob]:
        given = {"before": self._before(silence), "limit": _RUNNING, "most": limit}
        with self._session.reading():
            rows = self._found(statements.QUIET, given)
            return [QuietJob(job_id, kind, queue, owner, self._moment(at)) for job_id, kind, queue, owner, at in rows]

    def tenants(self, queue: str, job_type: str, sample: int = 25) -> dict[str, int]:
        given = {"queue": queue, "type": job_type, "now": self._before(timedelta(0)), "limit": sample}
        with self._session.reading():
            return dict(self._found(statements.TENANTS, given))

    def clock_skew(self) -> timedelta:
        if self._session.clock is not None:
            return timedelta(0)
        began = SYSTEM.now()
        there = self._session.now()
        # The database answered somewhere in between.
        return began + (SYSTEM.now() - began) / 2 - there

    def _counted(self, cap: int, most: int) -> list[tuple[Any, ...]]:
        # On SQLite, a table from before the typed columns may hold names that are not text.
        rows = self._found(statements.dead_letters(most), {"limit": cap + 1})
        return [row for row in rows if isinstance(row[0], str) and isinstance(row[1], str)]

    def _found(self, statement: str, given: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        with self._session.connection.cursor() as cursor:
            cursor.execute(statement, given)
            rows: list[tuple[Any, ...]] = cursor.fetchall()
            return rows

    def _before(self, length: timedelta) -> Any:
        """Return the moment that long ago, as the database stores it."""
        moment = self._session.now() - length
        return Job._meta.get_field("updated_at").get_db_prep_value(moment, self._session.connection)

    def _moment(self, value: Any) -> datetime:
        return as_utc(value, self._session.connection)
