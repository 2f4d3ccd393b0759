"""The session of SQLite, which waits for the write lock, and sets unreadable rows aside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from sqlite3 import SQLITE_ERROR, Connection
from typing import TypeVar, cast

from django.db import OperationalError
from django.db.models import QuerySet

from jobqueue.backends.sql.filters import ids_from
from jobqueue.backends.sql.session import Session
from jobqueue.backends.sqlite import lock, unreadable
from jobqueue.clock import SYSTEM
from jobqueue.models import Job

T = TypeVar("T")


class SqliteSession(Session):
    """A SQLite file. The clock is this machine's."""

    def now(self) -> datetime:
        return (self.clock or SYSTEM).now()

    def retrying(self, work: Callable[[], T]) -> T:
        """Do work once the write lock is free. If a live job can't be read, make all such jobs dead letters and repeat.

        An unreadable job at the front of the queue would make every claim fail. Inside a caller's transaction, the
        error is raised instead, because that transaction must not change other jobs.
        """
        try:
            return lock.retrying(self.connection, work, self.patience)
        except OperationalError as error:
            if self.in_atomic() or not unreadable.is_told_by(error):
                raise
        lock.retrying(self.connection, lambda: unreadable.end_all(self.connection, self.now()))
        return lock.retrying(self.connection, work, self.patience)

    @contextmanager
    def write_transaction(self) -> Iterator[None]:
        with lock.immediate(self.connection), self.atomic():
            yield

    @contextmanager
    def driver(self) -> Iterator[Connection]:
        """Yield the driver's connection, because Django's cursor costs more than short statements."""
        connection = self.connection
        connection.validate_no_broken_transaction()  # as Django's cursor does
        connection.ensure_connection()
        with connection.wrap_database_errors:
            yield cast(Connection, connection.connection)

    def ids_with_text(self, rows: QuerySet[Job], text: str, most: int) -> list[str] | None:
        return ids_from(rows.filter(error__icontains=text).order_by("-pk"), 0, most)

    def any_text(self) -> AbstractContextManager[None]:
        return unreadable.read_as(self.connection, unreadable.AS_FAR_AS_TEXT)

    def true_text(self) -> AbstractContextManager[None]:
        return unreadable.read_as(self.connection, str)

    def is_missing_table(self, error: Exception) -> bool:
        return str(error).startswith(("no such table: job_queue", "no such column: job_queue"))

    def lies_in_row(self, error: Exception) -> bool:
        code = getattr(error.__cause__, "sqlite_errorcode", None)
        is_plain = code == SQLITE_ERROR and not self.is_missing_table(error)  # as if a trigger fails
        return super().lies_in_row(error) or is_plain or unreadable.is_told_by(error)
