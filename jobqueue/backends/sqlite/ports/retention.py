"""Retention on SQLite, along the rowid: an id may be text that isn't UTF-8, and no walk would get past it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from jobqueue.backends.ports.retention import Place
from jobqueue.backends.sql.ports.retention import SqlRetention
from jobqueue.backends.sqlite.ports.storage import log_of
from jobqueue.backends.sqlite.session import SqliteSession

#: The value of ``PRAGMA auto_vacuum`` with which SQLite gives free pages back when it is asked to.
_INCREMENTAL = 2
#: How many free pages stay for the next jobs, and how many are given back at once, which takes some milliseconds.
PAGES_KEPT, PAGES_AT_ONCE = 1_000, 250
#: The bytes from which the log is cut while nothing runs.
LOG_KEPT = 1024 * 1024


class SqliteRetention(SqlRetention):
    """Jobs have rowids in the order in which they were inserted."""

    _session: SqliteSession
    key = "rowid"
    among = "rowid IN (SELECT value FROM json_each(%(keys)s))"

    def _keys(self, keys: Iterable[int | str]) -> str:
        return json.dumps(list(keys))

    def before(self, job_id: str) -> Place:
        statement = "SELECT rowid FROM job_queue WHERE id < %(id)s ORDER BY id DESC LIMIT 1"
        with self._session.reading():
            rows = self._run(statement, {"id": job_id})
        return rows[0][0] + 1 if rows else None

    def compact(self) -> bool:
        if self._session.in_atomic():
            return False
        with self._session.reporting():
            if self._pragma("auto_vacuum") == _INCREMENTAL and self._pragma("freelist_count") > PAGES_KEPT:
                self._session.retrying(self._give_back)
                return True
            self._cut_log()
        return False

    def _give_back(self) -> None:
        with self._session.driver() as driver:  # execute() would stop after the first page
            driver.executescript(f"PRAGMA incremental_vacuum({PAGES_AT_ONCE})")

    def _cut_log(self) -> None:
        """Write the log back and empty its file, unless somebody reads or writes."""
        log = log_of(self._session)
        if log is None or _size(log) <= LOG_KEPT:
            return
        patience = self._pragma("busy_timeout")
        self._run("PRAGMA busy_timeout = 0", {})
        try:
            self._run("PRAGMA wal_checkpoint(TRUNCATE)", {})
        finally:
            self._run(f"PRAGMA busy_timeout = {patience}", {})

    def _pragma(self, name: str) -> int:
        return int(self._run(f"PRAGMA {name}", {})[0][0])


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
