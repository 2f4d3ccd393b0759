"""How SQLite is set up: the pragmas of a connection, the file and the indexes."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from jobqueue.backends.ports.setup import SetupReader
from jobqueue.backends.sql.ports.job_indexes import JOB_INDEXES
from jobqueue.backends.sql.session import Session
from jobqueue.records.setup import Setup, SqliteSetup


class SqliteSetupReader(SetupReader):
    """Reads pragmas, which are those of a worker too, because it opens its connections by the same settings."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def read(self) -> Setup:
        file = next((str(row[2]) for row in self._rows("PRAGMA database_list") if row[1] == "main"), "")
        there = {row[0] for row in self._rows("SELECT name FROM sqlite_master WHERE type = 'index'")}
        size = 0
        with suppress(OSError):
            size = Path(file).stat().st_size if file else 0
        return Setup(
            sqlite=SqliteSetup(
                journal_mode=str(self._pragma("journal_mode")).lower(),
                synchronous=int(self._pragma("synchronous")),
                busy_timeout=timedelta(milliseconds=int(self._pragma("busy_timeout"))),
                checkpoint_pages=int(self._pragma("wal_autocheckpoint")),
                file=file,
                size=size,
                unused=int(self._pragma("freelist_count")) * int(self._pragma("page_size")),
            ),
            missing_indexes=tuple(sorted(JOB_INDEXES - there)),
        )

    def _pragma(self, name: str) -> Any:
        return self._rows(f"PRAGMA {name}")[0][0]

    def _rows(self, statement: str) -> list[tuple[Any, ...]]:
        with self._session.reading(), self._session.connection.cursor() as cursor:
            cursor.execute(statement)
            rows: list[tuple[Any, ...]] = cursor.fetchall()
            return rows
