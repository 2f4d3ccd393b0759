"""The integrity of the database itself, including its files."""

from __future__ import annotations

from django.db import DatabaseError, connection, transaction

from benchmarks.faults.checker import Account
from benchmarks.faults.laboratory import Laboratory

_INDEXES = """
SELECT c.relname, bt_index_check(c.oid, true) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
  JOIN pg_am a ON a.oid = c.relam AND a.amname = 'btree'
 WHERE i.indrelid IN ('job_queue'::regclass, 'job_queue_attempt'::regclass)
"""


def look_for_damage(lab: Laboratory) -> None:
    """Let the database check its own tables and indexes, once every job has ended."""

    def look(_: Account) -> None:
        found = _sqlite_says() if lab.database == "sqlite" else _postgres_says()
        lab.findings["file"] = found
        lab.expect(found in ("ok", "not examined: there is no amcheck"), f"the database is whole, it says {found!r}")

    lab.afterwards(look)


def _sqlite_says() -> str:
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA integrity_check")
        return "; ".join(str(row[0]) for row in cursor.fetchall())


def _postgres_says() -> str:
    with connection.cursor() as cursor:
        try:
            with transaction.atomic():
                cursor.execute("CREATE EXTENSION IF NOT EXISTS amcheck")
        except DatabaseError:
            return "not examined: there is no amcheck"
        try:
            cursor.execute(_INDEXES)
        except DatabaseError as error:
            return str(error)
    return "ok"
