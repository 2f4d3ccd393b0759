"""The statements for claims under limits on Postgres, each a few ranges of an index."""

from __future__ import annotations

from jobqueue.backends.postgresql.statements import GROUPS_PRESENT, MAY_RUN

# The groups under limits that a worker may run and that have due jobs, in the order of their first jobs, and the number
# of all groups.
GROUPS = f"""
WITH RECURSIVE {GROUPS_PRESENT}
wanted AS MATERIALIZED (
    SELECT * FROM groups WHERE {MAY_RUN.format(row="groups").replace("@unlimited", "")}
       AND (type = ANY(%(limited_types)s) OR queue LIKE ANY(%(limited_queues)s))),
heads AS MATERIALIZED (
    SELECT w.*, head.scheduled_at, head.id FROM wanted AS w CROSS JOIN LATERAL (
        SELECT scheduled_at, id FROM job_queue
         WHERE status = 'queued' AND queue = w.queue AND type = w.type AND priority = w.priority
           AND scheduled_at <= @now ORDER BY scheduled_at, id LIMIT 1) AS head)
SELECT (SELECT count(*) FROM groups), queue, type, priority
  FROM (SELECT 1) AS one LEFT JOIN heads ON TRUE ORDER BY priority, scheduled_at, id
"""
# Locks that end with the transaction. The counts come from the next statement, which sees what earlier holders of the
# locks have committed.
LOCK = """
SELECT place FROM unnest(%(places)s::text[]) AS place
 WHERE pg_try_advisory_xact_lock(hashtextextended('job_queue ' || place, 0))
"""
# Over job_queue_leased (lease_until), which has the running jobs alone.
RUNNING = """
SELECT queue, type, concurrency_key, count(*) FROM job_queue
 WHERE status = 'in_progress' AND lease_until > '-infinity' GROUP BY queue, type, concurrency_key
"""
_CANDIDATE = "priority, extract(epoch FROM scheduled_at)::float8, id, queue, type, concurrency_key"
# Over job_queue_ready_type.
FIRST = f"""
SELECT c.* FROM json_to_recordset(%(groups)s::json) AS w(queue text, type text, priority smallint, most integer)
 CROSS JOIN LATERAL (
    SELECT {_CANDIDATE} FROM job_queue
     WHERE status = 'queued' AND queue = w.queue AND type = w.type AND priority = w.priority AND scheduled_at <= @now
     ORDER BY scheduled_at, id LIMIT w.most) AS c
"""
_OF_GROUP = """status = 'queued' AND concurrency_key IS NOT NULL
           AND queue = %(queue)s AND type = %(type)s AND priority = %(priority)s"""
_IN_ORDER = "ORDER BY queue, type, priority, concurrency_key"
# A skip-scan over job_queue_ready_key (queue, type, priority, concurrency_key, scheduled_at, id).
HEADS = f"""
WITH RECURSIVE keys AS (
    (SELECT concurrency_key, 1 AS n FROM job_queue WHERE {_OF_GROUP} AND concurrency_key > %(after)s
      {_IN_ORDER} LIMIT 1)
    UNION ALL
    SELECT n.* FROM keys AS k CROSS JOIN LATERAL (
        SELECT concurrency_key, k.n + 1 FROM job_queue WHERE {_OF_GROUP} AND concurrency_key > k.concurrency_key
         {_IN_ORDER} LIMIT 1) AS n
     WHERE k.n < %(most)s)
SELECT %(priority)s, head.scheduled_at, coalesce(head.id, ''), %(queue)s, %(type)s, k.concurrency_key
  FROM keys AS k LEFT JOIN LATERAL (
    SELECT extract(epoch FROM scheduled_at)::float8 AS scheduled_at, id FROM job_queue
     WHERE {_OF_GROUP} AND concurrency_key = k.concurrency_key AND scheduled_at <= @now
     ORDER BY queue, type, priority, concurrency_key, job_queue.scheduled_at, id LIMIT 1) AS head ON TRUE
 ORDER BY k.n
"""
FIRST_OF_KEYS = f"""
SELECT c.* FROM json_to_recordset(%(keys)s::json) AS w(key text, most integer) CROSS JOIN LATERAL (
    SELECT {_CANDIDATE} FROM job_queue WHERE {_OF_GROUP} AND concurrency_key = w.key AND scheduled_at <= @now
     ORDER BY queue, type, priority, concurrency_key, scheduled_at, id LIMIT w.most) AS c
"""
# Over job_queue_start_window (place, key, ends_at). The sum keeps the other index out, which a plan that was made on an
# empty table would prefer.
STARTS = """
SELECT w.place, w.key, s.count, s.frees_in
  FROM json_to_recordset(%(accounts)s::json) AS w(place text, key text, per float8)
 CROSS JOIN LATERAL (
    SELECT sum(count) AS count, extract(epoch FROM min(ends_at) - @now)::float8 AS frees_in FROM job_queue_start
     WHERE place = w.place AND key = w.key AND ends_at + interval '0' > @now
       AND ends_at + interval '0' <= @now + w.per * interval '1 second') AS s
 WHERE s.count IS NOT NULL
"""
# Later than the claim, whose jobs have started: so the window ends too late rather than too early.
ADD_STARTS = """
INSERT INTO job_queue_start (place, key, count, ends_at)
SELECT place, key, number, @now + per * interval '1 second'
  FROM json_to_recordset(%(starts)s::json) AS r(place text, key text, number integer, per float8)
RETURNING id
"""
PRUNE = """
DELETE FROM job_queue_start WHERE id = ANY(ARRAY(
    SELECT id FROM job_queue_start WHERE ends_at <= @now ORDER BY ends_at LIMIT 1000 FOR UPDATE SKIP LOCKED))
RETURNING id
"""
