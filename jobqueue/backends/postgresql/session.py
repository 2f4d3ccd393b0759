"""The session of Postgres: prepared statements, the server's clock, and the classes of errors."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from typing import Any, TypeVar

import psycopg
from django.db import OperationalError
from django.db.models import BooleanField, Func, Q, QuerySet, Value
from django.db.models.functions import Concat

from jobqueue.backends.postgresql import silence, statements
from jobqueue.backends.sql.filters import ids_among
from jobqueue.backends.sql.session import Session
from jobqueue.clock import to_text
from jobqueue.errors import DatabaseBusy
from jobqueue.models import Job
from jobqueue.models.fields import as_utc

T = TypeVar("T")

_NOW = "statement_timestamp()"
#: What "soon" is in seconds, how long an entry of an index takes, and how much longer if its page isn't all-visible.
_SOON, _SECONDS_AN_ENTRY, _SECONDS_A_ROW = 0.04, 0.0000003, 0.0000027
#: Among how many of the newest rows a text is sought before its index is read.
_NEWEST = 5_000
#: A prepared statement is missing or another session's, because of a pooler, or a migration has changed the table.
_NOT_PREPARED = (
    psycopg.errors.InvalidSqlStatementName,
    psycopg.errors.DuplicatePreparedStatement,
    psycopg.errors.FeatureNotSupported,
)
#: Classes of SQLSTATE that concern the server or the session: connections, transactions, resources, locks, prepared
#: statements, and the server's own faults.
_OF_THE_SERVER = ("08", "0A", "25", "26", "28", "3D", "40", "53", "54", "55", "57", "58", "F0", "XX")


class _HasTrigrams(Func):
    """The condition that a text has all groups of three letters of another one, which has at least one."""

    template, arg_joiner = "job_queue_trigrams(%(expressions)s)", ") @> job_queue_trigrams("
    output_field = BooleanField()


class PostgresSession(Session):
    """A Postgres database. The server's clock judges leases. Transaction poolers are supported.

    A worker's cycle uses a prepared statement only if the worker found that no pooler is in use.
    """

    #: The driver's connection that was last set up by ``_driver``.
    _set_up: object = None
    #: The seconds that a listener waits for an answer. ``None`` leaves that to TCP.
    listener_silence: float | None = None

    def answering_within(self, seconds: float) -> AbstractContextManager[object]:
        return silence.bounded(self.connection, seconds)

    def bound_silence(self, seconds: float) -> None:
        """Fail statements, and listeners that start from now on, if the server is silent for ``seconds``."""
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
        """Set the session up and open a transaction, because a session can't be set up inside one."""
        with self.connection.wrap_database_errors:
            self._driver()
        with self.write_transaction():
            yield

    def run(self, statement: str, parameters: Any = None) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows. ``@now`` stands for the time of the database or the virtual clock."""
        moment = f"'{to_text(self.clock.now())}'::timestamptz" if self.clock else _NOW
        with self.connection.cursor() as cursor, silence.sending(parameters):
            cursor.execute(statement.replace("@now", moment), parameters)
            rows: list[tuple[Any, ...]] = cursor.fetchall()
            return rows

    def run_cycle(self, parameters: dict[str, Any], **variant: bool) -> list[tuple[Any, ...]]:
        """Run the statement of a cycle. If the session allows prepared statements, the server plans it only once."""
        return self._run_prepared(parameters, lambda prepared: statements.cycle_statement(**variant, prepared=prepared))

    def run_planned(self, statement: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
        """Run a frequent statement of a cycle, prepared like it."""
        return self._run_prepared(parameters, lambda _prepared: statement)

    def _run_prepared(self, parameters: dict[str, Any], text: Callable[[bool], str]) -> list[tuple[Any, ...]]:
        with self.connection.wrap_database_errors:
            driver = self._driver()
            statement = text(driver is not None)
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

    @contextmanager
    def index_order(self, most: int) -> Iterator[int]:
        # Without statistics, Postgres would gather and sort whole ranges, however long they are.
        with self.atomic():
            ((unseen, *settings),) = self.run(statements.READ_IN_ORDER)
            seconds = _SECONDS_AN_ENTRY + float(unseen) * _SECONDS_A_ROW
            yield min(most, int(_SOON / seconds))
            self.run(statements.READ_AS_BEFORE, settings[: len(settings) // 2])

    def ids_with_text(self, rows: QuerySet[Job], text: str, most: int) -> list[str] | None:
        if len(text) < 3:  # it has no trigram
            return None
        contains = Q(error__icontains=text)
        with self.index_order(_NEWEST):
            newest = ids_among(rows, _NEWEST, contains, most)
        if len(newest) >= most:  # the index would lead to all that have it
            return newest
        found = rows.filter(_HasTrigrams("error", Value(text)), contains)
        # An expression, so that no planner reads all entries of the index in order of id instead.
        newest_first = found.order_by(Concat("pk", Value("")).desc())
        return list(newest_first.values_list("pk", flat=True)[:most])

    def _driver(self) -> Any:
        """Return the driver's connection, set up for prepared statements, or ``None`` if they can't be used."""
        wrapper: Any = self.connection
        if not self.is_own or self.clock or wrapper.pool:  # a pool lends the connection to other threads
            return None
        wrapper.ensure_connection()
        driver = wrapper.connection
        if driver is not self._set_up:
            if wrapper.in_atomic_block:
                return None  # a rollback would undo the setup
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
            # In other connections, the application has set the timeout.
            if is_locked(error) and self.connection.connection is self._set_up:
                raise DatabaseBusy(f"another session has locked what is needed in {self.alias!r}: {error}") from error
            raise

    def check_deferred(self) -> None:
        self.connection.check_constraints()

    def is_missing_table(self, error: Exception) -> bool:
        state = getattr(error.__cause__, "sqlstate", None)
        return (state == "42P01" and "job_queue" in str(error)) or (
            state == "42703" and str(error).startswith("column job_queue")
        )

    def lies_in_row(self, error: Exception) -> bool:
        state = getattr(error.__cause__, "sqlstate", None) or ""
        if not state or self.is_missing_table(error):
            return super().lies_in_row(error)
        return not state.startswith(_OF_THE_SERVER)  # a trigger may raise any other state


def is_locked(error: Exception) -> bool:
    """Return whether an error says that the wait for a lock took too long."""
    return isinstance(error.__cause__, psycopg.errors.LockNotAvailable)
