"""The session of Postgres: what is prepared in it, how its clock is asked, and which errors lie in a row."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, TypeVar

import psycopg
from django.db import OperationalError

from jobqueue.backends.postgresql import silence, statements
from jobqueue.backends.sql.session import Session
from jobqueue.clock import to_text
from jobqueue.errors import DatabaseBusy
from jobqueue.models.fields import as_utc

T = TypeVar("T")

_NOW = "statement_timestamp()"
#: What was prepared is gone or belongs to another session, because there is a pooler; or a migration changed the table.
_NOT_PREPARED = (
    psycopg.errors.InvalidSqlStatementName,
    psycopg.errors.DuplicatePreparedStatement,
    psycopg.errors.FeatureNotSupported,
)
#: Classes of SQLSTATE that concern the server or the session: connections, transactions, resources, locks, prepared
#: statements, and the server's own faults.
_OF_THE_SERVER = ("08", "0A", "25", "26", "28", "3D", "40", "53", "54", "55", "57", "58", "F0", "XX")


class PostgresSession(Session):
    """A Postgres database. Its clock judges, and nothing depends on the session: transaction poolers are welcome.

    If a worker's session is found to be its own, the statement of its cycle is prepared in it.
    """

    #: The driver's connection that was set up.
    _set_up: object = None
    #: How long a listener waits for an answer; ``None`` leaves that to TCP.
    listener_silence: float | None = None

    def bound_silence(self, seconds: float) -> None:
        """Break statements, and listeners that start from now on, if the server is silent for that long."""
        self.listener_silence = seconds
        silence.bound(self.connection, seconds)

    def now(self) -> datetime:
        if self.clock:
            return self.clock.now()
        return as_utc(self.run(f"SELECT {_NOW}")[0][0], self.connection)

    def retrying(self, work: Callable[[], T]) -> T:
        return work()

    @contextmanager
    def write_transaction(self) -> Iterator[None]:
        with self.atomic():
            yield

    @contextmanager
    def own_transaction(self) -> Iterator[None]:
        """Set the session up, and open a transaction. Inside one, it can't be set up."""
        with self.connection.wrap_database_errors:
            self._driver()
        with self.write_transaction():
            yield

    def run(self, statement: str, parameters: Any = None) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows. ``@now`` is the database's moment, or the virtual clock's."""
        moment = f"'{to_text(self.clock.now())}'::timestamptz" if self.clock else _NOW
        with self.connection.cursor() as cursor, silence.sending(parameters):
            cursor.execute(statement.replace("@now", moment), parameters)
            rows: list[tuple[Any, ...]] = cursor.fetchall()
            return rows

    def run_cycle(self, parameters: dict[str, Any], **variant: bool) -> list[tuple[Any, ...]]:
        """Run the statement of every cycle. In a session of our own, the server parses and plans it once."""
        with self.connection.wrap_database_errors:
            driver = self._driver()
            statement = statements.cycle_statement(**variant, prepared=driver is not None)
            if driver is not None:
                try:
                    with silence.sending(parameters):
                        cursor = psycopg.Cursor(driver).execute(
                            statement.replace("@now", _NOW), parameters, prepare=True
                        )
                except _NOT_PREPARED as error:
                    self.is_own = False
                    self.connection.close()
                    raise psycopg.OperationalError(f"the prepared statement can no longer be used: {error}") from error
                return cursor.fetchall()
        return self.run(statement, parameters)

    def _driver(self) -> Any:
        """Return the driver's connection, set up for what is prepared in it; ``None`` if the session is not our own."""
        wrapper: Any = self.connection
        if not self.is_own or self.clock or wrapper.pool:  # a pool lends it to others
            return None
        wrapper.ensure_connection()
        driver = wrapper.connection
        if driver is not self._set_up:
            if wrapper.in_atomic_block:
                return None  # a rollback would undo it
            driver.execute(statements.SESSION)
            if driver.prepare_threshold is None:
                driver.prepare_threshold = sys.maxsize  # otherwise ``prepare=True`` prepares nothing
            self._set_up = driver
        return driver

    # Errors

    @contextmanager
    def reporting(self) -> Iterator[None]:
        try:
            with super().reporting():
                yield
        except OperationalError as error:
            if is_locked(error) and self.connection.connection is self._set_up:  # otherwise the time-out is not ours
                raise DatabaseBusy(f"another session has locked what is needed in {self.alias!r}: {error}") from error
            raise

    def check_deferred(self) -> None:
        self.connection.check_constraints()

    def is_missing_table(self, error: Exception) -> bool:
        return getattr(error.__cause__, "sqlstate", None) == "42P01" and "job_queue" in str(error)

    def lies_in_row(self, error: Exception) -> bool:
        state = getattr(error.__cause__, "sqlstate", None) or ""
        if not state or self.is_missing_table(error):
            return super().lies_in_row(error)
        return not state.startswith(_OF_THE_SERVER)  # a trigger may raise any other


def is_locked(error: Exception) -> bool:
    """Return whether an error says that a lock was waited for too long."""
    return isinstance(error.__cause__, psycopg.errors.LockNotAvailable)
