"""The reading of queued and running jobs from the job table."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from jobqueue.backends.ports import OutstandingReader
from jobqueue.backends.sql.ports.statements import outstanding as statements
from jobqueue.backends.sql.session import Session
from jobqueue.durations import from_seconds
from jobqueue.models import Job
from jobqueue.models.fields import as_utc
from jobqueue.records.outstanding import Behind, QueuedJob, RunningJob


class SqlOutstandingReader(OutstandingReader):
    """Reads ranges of the indexes of running and queued jobs."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def running(self, limit: int) -> list[RunningJob]:
        return [
            RunningJob(*one[:5], *map(self._moment, one[5:9]), timeout=from_seconds(one[9]), reports=bool(one[10]))
            for one in self._found(statements.RUNNING, {"limit": limit})
        ]

    def queued(self, limit: int, after: Behind | None = None) -> list[QueuedJob]:
        kind = "" if after is None else "kind" if after.due is None else "job"
        moment = str(Job._meta.get_field("scheduled_at").db_type(self._session.connection))
        given = {"limit": limit} | (after._asdict() if after else {})
        return [
            QueuedJob(*one[:6], self._moment(one[6]), Behind(one[2], one[1], one[7], one[8], one[0]))
            for one in self._found(statements.queued(kind, moment), given)
        ]

    def _found(self, statement: str, given: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        with self._session.reading(), self._session.connection.cursor() as cursor:
            cursor.execute(statement, given)
            rows: list[tuple[Any, ...]] = cursor.fetchall()
            return rows

    def _moment(self, value: Any) -> Any:
        moment: datetime | None = None if value is None else as_utc(value, self._session.connection)
        return moment
