"""The last job of each subject, for more jobs than fit into memory.

The jobs are kept in a temporary SQLite file, which grows on disk and vanishes when it is closed. The queue's database
is only read.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import datetime
from hashlib import blake2b
from types import TracebackType

from jobqueue.clock import to_text

_TABLE = "CREATE TABLE newest (subject BLOB PRIMARY KEY, job_id TEXT, completed_at TEXT) WITHOUT ROWID"
_NOTE = """
    INSERT INTO newest VALUES (?, ?, ?) ON CONFLICT (subject) DO UPDATE
    SET job_id = excluded.job_id, completed_at = excluded.completed_at
    WHERE (excluded.completed_at, excluded.job_id) > (newest.completed_at, newest.job_id)
"""
_NEXT = "SELECT job_id FROM newest WHERE job_id > ? ORDER BY job_id LIMIT ?"


class Newest(AbstractContextManager["Newest"]):
    """The last job of each subject."""

    def __init__(self) -> None:
        # Without a name, the file can't be opened by others and vanishes with this connection.
        self._file = sqlite3.connect("", isolation_level=None)
        for statement in ("PRAGMA journal_mode=OFF", "PRAGMA synchronous=OFF", _TABLE):
            self._file.execute(statement)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def note(self, subject: str, job_id: str, completed_at: datetime | None) -> None:
        """Remember a job unless its subject has a later one."""
        moment = "" if completed_at is None else to_text(completed_at)
        self._file.execute(_NOTE, (_digest(subject), job_id, moment))

    def leave_out(self, subject: str) -> None:
        """Forget a subject."""
        self._file.execute("DELETE FROM newest WHERE subject = ?", (_digest(subject),))

    def pages(self, size: int) -> Iterator[list[str]]:
        """Yield pages of job ids, in order."""
        self._file.execute("CREATE INDEX by_job ON newest (job_id)")
        after = ""
        while page := [job_id for (job_id,) in self._file.execute(_NEXT, (after, size))]:
            yield page
            after = page[-1]

    def __len__(self) -> int:
        (count,) = self._file.execute("SELECT count(*) FROM newest").fetchone()
        return int(count)


def _digest(subject: str) -> bytes:
    return blake2b(subject.encode("utf-8", "replace"), digest_size=16).digest()
