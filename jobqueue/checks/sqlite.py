"""System checks of SQLite: its release, and the options of the database that holds the queue."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

from django.core.checks import CheckMessage, Error, register
from django.core.checks import Warning as Caution
from django.db import connections

from jobqueue import conf

#: The first release with RETURNING.
OLDEST_SQLITE = (3, 35, 0)
#: In releases before this one, two connections that write and checkpoint at the same moment can corrupt a database in
#: WAL mode. This is rare, but the processes of a queue use the database in this way.
WAL_RESET_FIXED = (3, 51, 3)


def check_file(alias: str) -> Iterator[CheckMessage]:
    """Check the release of SQLite, and the options of the database that holds the queue."""
    options = connections.settings[alias].get("OPTIONS", {})
    where = f"DATABASES[{alias!r}]['OPTIONS']"
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        yield Error(
            f"SQLite {sqlite3.sqlite_version} is too old for the job queue.",
            hint="It needs 3.35 or newer.",
            id="jobqueue.E007",
        )
    if str(options.get("transaction_mode", "")).upper() not in ("IMMEDIATE", "EXCLUSIVE"):
        yield Caution(
            f"Transactions of {alias!r} begin deferred: one that reads and then enqueues fails at once "
            "while another process writes, whatever the timeout.",
            hint=f"Set {where}['transaction_mode'] = 'IMMEDIATE'.",
            id="jobqueue.W001",
        )
    if not _has_write_ahead_log(alias):
        yield Caution(
            f"{alias!r} is not set to use a write-ahead log: readers and the worker block each other.",
            hint=f"Set {where}['init_command'] = 'PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;'.",
            id="jobqueue.W002",
        )


@register(conf.CHECKS, deploy=True)
def check_sqlite_release(**_: Any) -> list[CheckMessage]:
    """Check for a bug that most releases of SQLite have. The bug is rare, so only ``check --deploy`` reports it."""
    alias = conf.get("DATABASE") if conf.is_sound() else ""
    if alias not in connections.settings or connections[alias].vendor != "sqlite":
        return []
    if sqlite3.sqlite_version_info >= WAL_RESET_FIXED or not _has_write_ahead_log(alias):
        return []
    return [
        Caution(
            f"SQLite {sqlite3.sqlite_version} has a rare bug: in WAL mode, two connections that write and checkpoint "
            "at the same moment can corrupt the database.",
            hint="Upgrade SQLite to 3.51.3 or newer and keep backups; silence jobqueue.W003 if your build has the fix.",
            id="jobqueue.W003",
        )
    ]


def _has_write_ahead_log(alias: str) -> bool:
    given = connections.settings[alias].get("OPTIONS", {}).get("init_command", "")
    return "journal_mode=wal" in "".join(str(given).lower().split())
