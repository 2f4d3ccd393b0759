"""Text that isn't valid UTF-8. SQLite stores such text for other programs, and the driver can't read it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from sqlite3 import Connection
from typing import Any, cast

from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.utils import OperationalError

from jobqueue.backends.sqlite import lock
from jobqueue.clock import to_text
from jobqueue.ids import new_id
from jobqueue.models import Job
from jobqueue.records.outcome import MESSAGE_LIMIT, storable

_FIELDS = {str(field.column): field for field in Job._meta.concrete_fields}
#: Decodes UTF-8 with a replacement character for invalid bytes. This takes twice as long as ``str``.
AS_FAR_AS_TEXT = partial(str, encoding="utf-8", errors="replace")
_LIVE = f"SELECT rowid, {', '.join(_FIELDS)} FROM job_queue WHERE status IN ('queued', 'in_progress')"


def is_told_by(error: Exception) -> bool:
    """Return whether an error says that a text isn't valid UTF-8."""
    return isinstance(error, OperationalError) and "Could not decode to UTF-8" in str(error)


@contextmanager
def read_as(connection: BaseDatabaseWrapper, text_factory: Callable[[bytes], Any]) -> Iterator[None]:
    """Set the driver's ``text_factory``, which decodes text, and restore it afterwards."""
    connection.ensure_connection()
    driver = cast(Connection, connection.connection)
    given, driver.text_factory = driver.text_factory, text_factory
    try:
        yield
    finally:
        driver.text_factory = given


def end_all(connection: BaseDatabaseWrapper, moment: datetime) -> None:
    """Make a dead letter of each live job that can't be read."""
    now = to_text(moment)
    with lock.immediate(connection), transaction.atomic(using=connection.alias):
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
    """Yield the rowid of each live job that can't be read, with its unreadable columns."""
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
    """Return NULL for columns that allow it, the readable part of the others, and a new id for an unreadable one."""
    mended = {
        column: None if _FIELDS[column].null else value.decode(errors="replace") for column, value in unreadable.items()
    }
    return mended | ({"id": new_id()} if "id" in unreadable else {})


def _told(unreadable: dict[str, bytes]) -> str:
    parts = (f"{column} {value.decode(errors='backslashreplace')!r}" for column, value in unreadable.items())
    return storable(f"Another program wrote what is not UTF-8: {', '.join(parts)}.", MESSAGE_LIMIT)
