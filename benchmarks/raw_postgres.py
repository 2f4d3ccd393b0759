"""The bare SQL on Postgres, through `psycopg`, which prepares frequent statements."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import psycopg

from benchmarks.raw import INSERT, INSERT_MANY, RESULT, Crowd, Held, Raw, Row

# One statement, one round trip. coalesce() hides the column's statistics, which would turn the join inside out. Over
# job_queue_ready, which wants to hear `priority > 0`.
_CYCLE = """
WITH d AS (
  UPDATE job_queue AS j SET status = 'completed', result = v.result, completed_at = statement_timestamp(),
         updated_at = statement_timestamp(), lease_owner = NULL, lease_until = NULL
    FROM unnest(%(ids)s::text[], %(fences)s::bigint[], %(results)s::jsonb[]) AS v(id, fence, result)
   WHERE j.id = v.id AND coalesce(j.lease_owner, '') = %(owner)s AND j.fence = v.fence RETURNING j.id, j.fence),
u AS (
  UPDATE job_queue AS j SET status = 'in_progress', lease_owner = %(owner)s, attempts = j.attempts + 1,
         fence = j.fence + 1, lease_until = statement_timestamp() + interval '60 seconds',
         started_at = statement_timestamp(), updated_at = statement_timestamp()
   WHERE j.id = ANY(ARRAY(
         SELECT c.id FROM generate_series(1, 10) AS p(p) CROSS JOIN LATERAL (
                SELECT id FROM job_queue WHERE status = 'queued' AND priority > 0 AND priority = p.p
                   AND scheduled_at <= statement_timestamp()
                 ORDER BY scheduled_at, id LIMIT %(limit)s FOR UPDATE SKIP LOCKED) AS c LIMIT %(limit)s))
  RETURNING j.id, j.fence, j.type, j.payload, j.attempts, j.max_retries, j.priority, j.scheduled_at)
SELECT 'claimed', u.* FROM u UNION ALL SELECT 'done', d.id, d.fence, NULL, NULL, NULL, NULL, NULL, NULL FROM d
"""
_FILL = """
INSERT INTO job_queue (id, type, queue, status, priority, payload, scheduled_at, created_at, updated_at)
SELECT '0BENCH' || lpad((%(number)s + i)::text, 20, '0'), %(type)s, %(queue)s, %(status)s, %(priority)s,
       %(payload)s::jsonb,
       now() + interval '1 second' * (%(first_due)s + 0.01 * (%(skip)s + i)), now(), now()
  FROM generate_series(0, %(count)s - 1) AS n(i)
"""


class RawPostgres(Raw):
    """A connection in autocommit."""

    def connect(self) -> None:
        self._connection: psycopg.Connection[tuple[Any, ...]] = psycopg.connect(self.address, autocommit=True)

    def close(self) -> None:
        self._connection.close()

    def empty(self) -> None:
        self._connection.execute("DROP SCHEMA public CASCADE")
        self._connection.execute("CREATE SCHEMA public")
        self.close()
        self.connect()

    def versions(self) -> str:
        return f"PostgreSQL {self._connection.info.parameter_status('server_version')}"

    def enqueue(self, rows: Sequence[Row]) -> None:
        with self._connection.cursor() as cursor:
            for row in rows:
                cursor.execute(INSERT, row)
                cursor.fetchone()

    def enqueue_many(self, rows: Sequence[Row]) -> None:
        with self._connection.transaction(), self._connection.cursor() as cursor:
            cursor.executemany(INSERT_MANY, rows)

    def cycle(self, owner: str, done: Sequence[Held], limit: int) -> list[Held]:
        ids, fences = [job_id for job_id, _ in done], [fence for _, fence in done]
        values = {"ids": ids, "fences": fences, "results": [RESULT] * len(done), "owner": owner, "limit": limit}
        rows = self._connection.execute(_CYCLE, values).fetchall()
        claimed = [(row[1], row[2]) for row in rows if row[0] == "claimed"]
        if len(rows) - len(claimed) != len(done):
            raise RuntimeError("a completion was refused")
        return claimed

    def analyse(self) -> None:
        self._connection.execute("ANALYZE")

    def settle_down(self) -> None:
        with suppress(psycopg.errors.InsufficientPrivilege):
            self._connection.execute("CHECKPOINT")

    def leave_unanalysed(self) -> None:
        self._connection.execute("ALTER TABLE job_queue SET (autovacuum_enabled = false)")

    def _fill(self, crowd: Crowd, number: int, skip: int) -> None:
        values = {
            "count": crowd.count,
            "number": number,
            "skip": skip,
            "type": crowd.type,
            "queue": crowd.queue,
            "status": crowd.status,
            "priority": crowd.priority,
            "payload": crowd.payload,
            "first_due": crowd.first_due,
        }
        self._connection.execute(_FILL, values)
