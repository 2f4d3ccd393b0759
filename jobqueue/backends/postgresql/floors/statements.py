"""The statements that begin at floors, and those that look behind them."""

from __future__ import annotations

from functools import cache

from jobqueue.backends.sql.statements import EXPIRE_SET, RAN_OUT_COLUMNS

# Without the jobs that can neither be run nor ended.
SPARING = " AND id <> ALL(%(left_out)s)"
# Ranges of an index, each from a position up to another.
RANGES = """
unnest(%(keys)s::smallint[], %(since)s::timestamptz[], %(since_ids)s::text[],
       %(until)s::timestamptz[], %(until_ids)s::text[])
       WITH ORDINALITY AS r(key, since, since_id, until, until_id, place)
"""
IN_RANGE = "(scheduled_at, id) >= (r.since, r.since_id) AND (scheduled_at, id) < (r.until, r.until_id)"
# Whether there is a row in each range, and the moment at which that was known.
_LOOK = f"""
SELECT r.place, found.row IS NOT NULL, extract(epoch FROM clock_timestamp())::float8
  FROM {RANGES} LEFT JOIN LATERAL (@first) AS found ON TRUE
"""
LOOK_AT_QUEUED = _LOOK.replace(
    "@first",
    f"""SELECT id AS row FROM job_queue
         WHERE status = 'queued' AND priority > 0 AND priority = r.key AND {IN_RANGE}@sparing
         ORDER BY scheduled_at, id LIMIT 1""",
)
# Sweeps read what has run out, and so do the looks for them.
LOOK_AT_LEASED = _LOOK.replace(
    "@first",
    """SELECT id AS row FROM job_queue
         WHERE status = 'in_progress' AND lease_until >= r.since AND lease_until < LEAST(r.until, @now)
         ORDER BY lease_until LIMIT 1""",
)
LOOK_AT_EXPIRING = _LOOK.replace(
    "@first",
    """SELECT id AS row FROM job_queue
         WHERE status = 'queued' AND expires_at IS NOT NULL AND expires_at >= r.since
           AND expires_at < LEAST(r.until, @now) ORDER BY expires_at LIMIT 1""",
)
RAN_OUT_FROM_FLOORS = f"""
SELECT c.* FROM {RANGES} CROSS JOIN LATERAL (
    SELECT {RAN_OUT_COLUMNS} FROM job_queue
     WHERE status = 'in_progress' AND lease_until < @now AND lease_until >= r.since AND lease_until < r.until
     ORDER BY lease_until, id LIMIT %(limit)s FOR UPDATE SKIP LOCKED) AS c
 LIMIT %(limit)s
"""
EXPIRE_FROM_FLOORS = f"""
UPDATE job_queue SET {EXPIRE_SET}, completed_at = @now, updated_at = @now
 WHERE id = ANY(ARRAY(
    SELECT c.id FROM {RANGES} CROSS JOIN LATERAL (
        SELECT id FROM job_queue
         WHERE status = 'queued' AND expires_at IS NOT NULL AND expires_at <= @now
           AND expires_at >= r.since AND expires_at < r.until
         ORDER BY expires_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED) AS c
     LIMIT %(limit)s))
RETURNING id
"""


@cache
def look_statement(*, sparing: bool) -> str:
    """Return the statement that looks for queued jobs in ranges."""
    return LOOK_AT_QUEUED.replace("@sparing", SPARING if sparing else "")


# The depth of each queue and type, of the first jobs of each range: due, later, and the oldest due.
COUNT_QUEUED = f"""
SELECT queue, type, count(*) FILTER (WHERE scheduled_at <= %(now)s), count(*) FILTER (WHERE scheduled_at > %(now)s),
       min(scheduled_at) FILTER (WHERE scheduled_at <= %(now)s)
  FROM {RANGES} CROSS JOIN LATERAL (
       SELECT queue, type, scheduled_at FROM job_queue
        WHERE status = 'queued' AND priority > 0 AND priority = r.key AND {IN_RANGE}
        ORDER BY scheduled_at, id LIMIT %(limit)s) AS c
 GROUP BY queue, type
"""
COUNT_RUNNING = f"""
SELECT queue, type, count(*)
  FROM (SELECT c.queue, c.type FROM {RANGES} CROSS JOIN LATERAL (
               SELECT queue, type FROM job_queue
                WHERE status = 'in_progress' AND lease_until >= r.since AND lease_until < r.until
                ORDER BY lease_until LIMIT %(limit)s) AS c
         LIMIT %(limit)s) AS running
 GROUP BY queue, type
"""
