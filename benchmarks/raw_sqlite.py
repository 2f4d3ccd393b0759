"""The bare SQL on SQLite, through `sqlite3`."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from benchmarks.raw import INSERT, INSERT_MANY, RESULT, Crowd, Held, Raw, Row
from jobqueue.clock import SYSTEM, to_text

_INSERT = INSERT.replace("%s", "?")
_INSERT_MANY = INSERT_MANY.replace("%s", "?")
_COMPLETE = """
UPDATE job_queue SET status = 'completed', result = ?, completed_at = ?, updated_at = ?, lease_owner = NULL,
       lease_until = NULL
 WHERE id = ? AND lease_owner = ? AND fence = ? AND status = 'in_progress'
"""
# Over job_queue_ready, which wants to hear `priority > 0`; told that it is always true, SQLite takes it for no range.
_ARMS = " UNION ALL ".join(
    "SELECT * FROM (SELECT id, priority, scheduled_at FROM job_queue WHERE status = 'queued' "
    f"AND likelihood(priority > 0, 1.0) AND priority = {priority} AND scheduled_at <= :now "
    "ORDER BY scheduled_at, id LIMIT :limit)"
    for priority in range(1, 11)
)
_CLAIM = f"""
UPDATE job_queue SET status = 'in_progress', lease_owner = :owner, lease_until = :until, attempts = attempts + 1,
       fence = fence + 1, started_at = :now, updated_at = :now
 WHERE id IN (SELECT id FROM ({_ARMS}) LIMIT :limit)
RETURNING id, fence, type, payload, attempts, max_retries, priority, scheduled_at
"""
_FILL = """
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < :count)
INSERT INTO job_queue (id, type, queue, status, priority, payload, scheduled_at, created_at, updated_at)
SELECT printf('0BENCH%020d', :number + i), :type, :queue, :status, :priority, :payload,
       strftime('%Y-%m-%dT%H:%M:%fZ', :first_due + 0.01 * (:skip + i), 'unixepoch'), :now, :now FROM n
"""


class RawSqlite(Raw):
    """A connection in autocommit, with the journal and synchronous modes of the settings."""

    def connect(self) -> None:
        self._connection = sqlite3.connect(self.address, isolation_level=None, timeout=30)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = NORMAL")

    def close(self) -> None:
        self._connection.close()

    def empty(self) -> None:
        self.close()
        for suffix in ("", "-wal", "-shm"):
            Path(self.address + suffix).unlink(missing_ok=True)
        self.connect()

    def versions(self) -> str:
        return f"SQLite {sqlite3.sqlite_version}"

    def enqueue(self, rows: Sequence[Row]) -> None:
        execute = self._connection.execute
        for row in rows:
            execute(_INSERT, row).fetchone()

    def enqueue_many(self, rows: Sequence[Row]) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany(_INSERT_MANY, rows)
        self._connection.execute("COMMIT")

    def cycle(self, owner: str, done: Sequence[Held], limit: int) -> list[Held]:
        moment = SYSTEM.now()
        now = to_text(moment)
        until = now.replace(now[:4], str(moment.year + 1), 1)
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        if done:
            settled = [(RESULT, now, now, job_id, owner, fence) for job_id, fence in done]
            if self._connection.executemany(_COMPLETE, settled).rowcount != len(done):
                raise RuntimeError("a completion was refused")
        claimed = execute(_CLAIM, {"owner": owner, "now": now, "until": until, "limit": limit}).fetchall()
        execute("COMMIT")
        return [(row[0], row[1]) for row in claimed]

    def analyse(self) -> None:
        self._connection.execute("ANALYZE")

    def settle_down(self) -> None:
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def leave_unanalysed(self) -> None:
        """Do nothing, because SQLite only collects statistics on request."""

    def _fill(self, crowd: Crowd, number: int, skip: int) -> None:
        moment = SYSTEM.now()
        values = {
            "count": crowd.count,
            "number": number,
            "skip": skip,
            "type": crowd.type,
            "queue": crowd.queue,
            "status": crowd.status,
            "priority": crowd.priority,
            "payload": crowd.payload,
            "first_due": moment.timestamp() + crowd.first_due,
            "now": to_text(moment),
        }
        self._connection.execute(_FILL, values)
