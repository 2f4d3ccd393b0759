"""The log of SQLite, which grows as long as a reader keeps it from being written back."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from jobqueue.backends.ports import StorageReader
from jobqueue.backends.sql.session import Session
from jobqueue.records.storage import Storage

#: To how many bytes the file of the log is cut once everything in it is written back: well below what is reported.
LARGEST_LOG = 16 * 1024 * 1024


def bound_log(session: Session) -> None:
    """Have this connection cut the log when it begins it again. SQLite itself leaves the file as large as it was."""
    with session.reporting(), session.connection.cursor() as cursor:
        cursor.execute(f"PRAGMA journal_size_limit = {LARGEST_LOG}")


def log_of(session: Session) -> Path | None:
    """Return the file of the log, which may be missing, or ``None`` for a database in memory."""
    with session.reading(), session.connection.cursor() as cursor:
        cursor.execute("PRAGMA database_list")
        path = next((row[2] for row in cursor.fetchall() if row[1] == "main"), "")
    return Path(f"{path}-wal") if path else None


class SqliteStorageReader(StorageReader):
    """Reads the size of the log. SQLite doesn't say which process reads."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def read(self) -> Storage:
        log, size = log_of(self._session), 0
        with suppress(OSError):
            size = log.stat().st_size if log else 0
        return Storage(log_size=size)
