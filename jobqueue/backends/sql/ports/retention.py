"""Retention: the walk over ended jobs by the order of the table, and their deletion."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar

from django.db.models import OuterRef, Q, Subquery

from jobqueue.backends.ports.retention import Place, Retention
from jobqueue.backends.sql.session import Session
from jobqueue.clock import to_text
from jobqueue.foreign_json import Unreadable
from jobqueue.models import Attempt, Job, KnownError, Order, OrderedJob
from jobqueue.models.fields import as_utc
from jobqueue.models.order import OrderState
from jobqueue.policy.retention import ENDED, EndedJob
from jobqueue.states import JobStatus

_ENDED = frozenset(status.value for status in ENDED)
#: How many rows beside jobs are deleted at once.
_BESIDE = 200


class SqlRetention(Retention):
    """Walks along a key of the table, so that neither a completion nor a claim pays for an index.

    A completed job is in no index but the primary key.
    """

    #: The column of the key, which grows with the age of a job.
    key: ClassVar[str]
    #: The rows with given keys, locked where that is possible.
    among: ClassVar[str]
    locked: ClassVar[str] = ""

    def __init__(self, session: Session) -> None:
        self._session = session

    @abstractmethod
    def _keys(self, keys: Iterable[int | str]) -> Any:
        """Return keys as the parameter of ``among``."""

    def walk(self, after: Place, most: int) -> tuple[list[EndedJob], Place]:
        behind = "" if after is None else f"WHERE {self.key} < %(after)s"
        statement = f"SELECT {self._columns} FROM job_queue {behind} ORDER BY {self.key} DESC LIMIT %(most)s"
        with self._session.reading(), self._session.index_order(most):
            rows = self._run(statement, {"after": after, "most": most})
        place = rows[-1][0] if len(rows) == most else None
        return [self._job(row) for row in rows if row[4] in _ENDED], place

    def rows(self, ids: Sequence[str]) -> list[dict[str, Any]]:
        with self._session.reading():
            jobs = self._session.rows(Job).filter(pk__in=ids).order_by("pk").values()
            found = {row["id"]: {**_plain(row), "history": []} for row in jobs}
            for row in self._session.rows(Attempt).filter(job_id__in=ids).order_by("pk").values():
                if row["job_id"] in found:
                    found[row["job_id"]]["history"].append(_plain(row))
        return list(found.values())

    def prune(self, jobs: Sequence[EndedJob]) -> list[EndedJob]:
        return self._session.transact(lambda: self._prune({job.key: job for job in jobs}))

    def _prune(self, wanted: dict[int | str, EndedJob]) -> list[EndedJob]:
        statement = f"SELECT {self._columns} FROM job_queue WHERE {self.among} ORDER BY {self.key} {self.locked}"
        rows = self._run(statement, {"keys": self._keys(wanted)})
        same = [job for job in map(self._job, rows) if wanted.get(job.key) == job]
        if same:
            self._session.rows(Attempt).filter(job_id__in=[job.id for job in same]).delete()
            self._run(f"DELETE FROM job_queue WHERE {self.among}", {"keys": self._keys(job.key for job in same)})
        return same

    @property
    def _columns(self) -> str:
        return f"{self.key}, id, type, queue, status, coalesce(completed_at, updated_at)"

    def _job(self, row: tuple[Any, ...]) -> EndedJob:
        key, job_id, kind, queue, status, ended_at = row
        return EndedJob(key, job_id, kind, queue, status, as_utc(ended_at, self._session.connection))

    def _run(self, statement: str, given: dict[str, Any]) -> list[tuple[Any, ...]]:
        with self._session.connection.cursor() as cursor:
            cursor.execute(statement, given)
            rows: list[tuple[Any, ...]] = cursor.fetchall() if cursor.description else []
            return rows

    # Beside jobs

    def prune_beside(self, orders: timedelta, errors: timedelta) -> int:
        return self._session.transact(lambda: self._prune_orders(orders) + self._prune_errors(errors))

    def _prune_orders(self, age: timedelta) -> int:
        """Delete the jobs of old orders in parts, and an order after its last part."""
        ended = Q(state__in=(OrderState.DONE, OrderState.STOPPED), ended_at__lt=self._session.now() - age)
        rows = self._session.rows(Order).filter(ended).order_by("pk").select_for_update(skip_locked=True)
        old = list(rows.values_list("pk", flat=True)[:1])
        parts = self._session.rows(OrderedJob).filter(order__in=old)
        if some := list(parts.order_by("pk").values_list("pk", flat=True)[:_BESIDE]):
            return parts.filter(pk__in=some).delete()[0]
        return self._session.rows(Order).filter(pk__in=old).delete()[0] if old else 0

    def _prune_errors(self, age: timedelta) -> int:
        """Delete old errors that no dead letter has."""
        before = self._session.now() - age
        dead = Job.objects.filter(status=JobStatus.DEAD_LETTER.value, error_fingerprint=OuterRef("fingerprint"))
        rows = self._session.rows(KnownError).filter(Q(retried_at=None) | Q(retried_at__lt=before), first_at__lt=before)
        unused = rows.alias(found=Subquery(dead.values("pk")[:1])).filter(found=None).order_by("pk")
        some = list(unused.values_list("pk", flat=True)[:_BESIDE])
        return self._session.rows(KnownError).filter(pk__in=some).delete()[0] if some else 0


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _written(value) for name, value in row.items()}


def _written(value: Any) -> Any:
    """Return a moment as text, and JSON that can't be read as it is stored."""
    if isinstance(value, datetime):
        return to_text(value)
    return value.text if isinstance(value, Unreadable) else value
