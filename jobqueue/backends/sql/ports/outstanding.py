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
            RunningJob(
                id=job_id,
                type=kind,
                queue=queue,
                owner=owner,
                attempts=attempts,
                started_at=self._moment(started_at),
                updated_at=self._moment(updated_at),
                lease_until=self._moment(lease_until),
                cancel_requested_at=self._moment(cancel_requested_at),
                timeout=from_seconds(timeout),
                reports=bool(reports),
            )
            for job_id, kind, queue, owner, attempts, started_at, updated_at, *rest in self._found(
                statements.RUNNING, {"limit": limit}
            )
            for lease_until, cancel_requested_at, timeout, reports in [rest]
        ]

    def queued(self, limit: int, after: Behind | None = None) -> list[QueuedJob]:
        kind = "" if after is None else "kind" if after.due is None else "job"
        moment = str(Job._meta.get_field("scheduled_at").db_type(self._session.connection))
        given = {"limit": limit} | (after._asdict() if after else {})
        return [self._queued(*one) for one in self._found(statements.queued(kind, moment), given)]

    def _queued(  # the columns, in their order
        self,
        job_id: str,
        kind: str,
        queue: str,
        tenant: str,
        payload: str,
        version: int,
        created_at: Any,
        priority: int,
        due: object,
    ) -> QueuedJob:
        place = Behind(queue, kind, priority, due, job_id)
        return QueuedJob(job_id, kind, queue, tenant, payload, version, self._moment(created_at), place)

    def _found(self, statement: str, given: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        with self._session.reading(), self._session.connection.cursor() as cursor:
            cursor.execute(statement, given)
            rows: list[tuple[Any, ...]] = cursor.fetchall()
            return rows

    def _moment(self, value: Any) -> Any:
        moment: datetime | None = None if value is None else as_utc(value, self._session.connection)
        return moment
