"""Bytes that are no text: SQLite stores them for any program that says they are, and the driver fails to read them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from sqlite3 import Connection
from typing import Any, TypeVar, cast

from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.utils import OperationalError

from jobqueue.backends import sqlite_busy
from jobqueue.clock import to_text
from jobqueue.ids import new_id
from jobqueue.models import Job
from jobqueue.records.outcome import MESSAGE_LIMIT, storable

T = TypeVar("T")

_FIELDS = {str(field.column): field for field in Job._meta.concrete_fields}
#: Puts a sign in the place of each byte that is no UTF-8; that takes twice as long.
AS_FAR_AS_TEXT = partial(str, encoding="utf-8", errors="replace")
_LIVE = f"SELECT rowid, {', '.join(_FIELDS)} FROM job_queue WHERE status IN ('queued', 'in_progress')"


def patiently_past(
    connection: BaseDatabaseWrapper, work: Callable[[], T], patience: float | None, now: Callable[[], datetime]
) -> T:
    """Do work patiently; where a live job cannot be read, make dead letters of all that are so, and do it again.

    One such row at the head of the queue would else fail every claim there is. Not in a caller's transaction: what is
    amiss with others' jobs is no part of it.
    """
    try:
        return sqlite_busy.patiently(connection, work, patience)
    except OperationalError as error:
        if connection.in_atomic_block or not is_told_by(error):
            raise
    sqlite_busy.patiently(connection, lambda: _bury_all(connection, to_text(now())))
    return sqlite_busy.patiently(connection, work, patience)


def is_told_by(error: Exception) -> bool:
    """Whether an error says that a text is no UTF-8."""
    return isinstance(error, OperationalError) and "Could not decode to UTF-8" in str(error)


@contextmanager
def read_as(connection: BaseDatabaseWrapper, text_factory: Callable[[bytes], Any]) -> Iterator[None]:
    """Make of text what ``text_factory`` makes of its bytes."""
    connection.ensure_connection()
    driver = cast(Connection, connection.connection)
    given, driver.text_factory = driver.text_factory, text_factory
    try:
        yield
    finally:
        driver.text_factory = given


def _bury_all(connection: BaseDatabaseWrapper, now: str) -> None:
    with sqlite_busy.immediate(connection), transaction.atomic(using=connection.alias):
        driver = cast(Connection, connection.connection)
        for rowid, unreadable in list(_found(driver)):
            values = _mended(unreadable) | {
                "status": "dead_letter",
                "end_reason": "not UTF-8",
                "error": _told(unreadable),
                "completed_at": now,
                "updated_at": now,
                "lease_owner": None,
                "lease_until": None,
            }
            assignments = ", ".join(f"{column} = ?" for column in values)
            driver.execute(f"UPDATE job_queue SET {assignments} WHERE rowid = ?", (*values.values(), rowid))


def _found(driver: Connection) -> Iterator[tuple[int, dict[str, bytes]]]:
    """Yield the row id of each live job that cannot be read, with the columns at fault."""
    given, driver.text_factory = driver.text_factory, bytes
    try:
        for rowid, *values in driver.execute(_LIVE):
            read = zip(_FIELDS, values, strict=True)
            if unreadable := {column: value for column, value in read if not _is_readable(value)}:
                yield rowid, unreadable
    finally:
        driver.text_factory = given


def _is_readable(value: Any) -> bool:
    if isinstance(value, bytes):
        try:
            value.decode()
        except UnicodeDecodeError:
            return False
    return True


def _mended(unreadable: dict[str, bytes]) -> dict[str, str | None]:
    """Empty what may be empty; the rest keeps what is text of it. An id that is none makes way for a new one."""
    mended = {
        column: None if _FIELDS[column].null else value.decode(errors="replace") for column, value in unreadable.items()
    }
    return mended | ({"id": new_id()} if "id" in unreadable else {})


def _told(unreadable: dict[str, bytes]) -> str:
    parts = (f"{column} {value.decode(errors='backslashreplace')!r}" for column, value in unreadable.items())
    return storable(f"Another program wrote what is not UTF-8: {', '.join(parts)}.", MESSAGE_LIMIT)
