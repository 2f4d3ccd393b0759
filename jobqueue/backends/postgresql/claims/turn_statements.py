"""The statements for claims from fair queues on Postgres, each a few ranges of an index."""

from __future__ import annotations

_GROUPS = """
json_to_recordset(%(groups)s::json) AS g(queue text, type text, priority smallint, after text, due_at text, id text)
"""
_OF_GROUP = "status = 'queued' AND queue = g.queue AND type = g.type AND priority = g.priority"
_DUE = "extract(epoch FROM scheduled_at)::float8"
_IN_TURN = "ORDER BY queue, type, priority, fair_key, scheduled_at, id"
_FIRST = "ORDER BY scheduled_at, id LIMIT"
# More than any number of a line. Rows are compared, so that no planner walks along the primary key.
_LAST = 2**63 - 1
# The lines that claims stored; a skip-scan to further turns over job_queue_ready_turn (queue, type, priority, fair_key,
# scheduled_at, id); and the first jobs of all turns over job_queue_ready_type, with some that are further behind.
LOOK = f"""
WITH RECURSIVE turns AS (
    SELECT g.queue, g.type, g.priority, t.*, 1 AS n FROM {_GROUPS} CROSS JOIN LATERAL (
        (SELECT fair_key, scheduled_at, id FROM job_queue
          WHERE g.after = '' AND {_OF_GROUP} AND fair_key IS NOT NULL AND fair_key >= '' {_IN_TURN} LIMIT 1)
        UNION ALL
        (SELECT fair_key, scheduled_at, id FROM job_queue
          WHERE g.after <> '' AND {_OF_GROUP} AND fair_key IS NOT NULL AND fair_key > g.after {_IN_TURN} LIMIT 1)) AS t
    UNION ALL
    SELECT g.queue, g.type, g.priority, t.*, g.n + 1 FROM turns AS g CROSS JOIN LATERAL (
        SELECT fair_key, scheduled_at, id FROM job_queue
         WHERE {_OF_GROUP} AND fair_key IS NOT NULL AND fair_key > g.fair_key {_IN_TURN} LIMIT 1) AS t
     WHERE g.n < %(slice)s)
(SELECT 'line', id::text, key, count::float8, finish, clock, NULL FROM job_queue_turn
  WHERE (queue, priority, id) >= (%(queue)s, %(priority)s, %(newest)s)
    AND (queue, priority, id) <= (%(queue)s, %(priority)s, {_LAST})
  ORDER BY queue DESC, priority DESC, job_queue_turn.id DESC LIMIT %(lines)s)
UNION ALL
SELECT 'turn', type, fair_key, n, {_DUE}, (scheduled_at <= @now)::integer, id FROM turns
UNION ALL
SELECT 'place', g.type, c.* FROM {_GROUPS} CROSS JOIN LATERAL (
    SELECT fair_key, {_DUE}, NULL::float8, NULL::float8, json_build_array(id, concurrency_key)::text FROM job_queue
     WHERE {_OF_GROUP} AND scheduled_at <= @now {_FIRST} %(most)s) AS c
UNION ALL
SELECT 'further', g.type, c.* FROM {_GROUPS} CROSS JOIN LATERAL (
    SELECT fair_key, {_DUE}, NULL::float8, NULL::float8,
           json_build_array(id, concurrency_key, scheduled_at::text)::text FROM job_queue
     WHERE {_OF_GROUP} AND scheduled_at <= @now AND (scheduled_at, id) > (g.due_at::timestamptz, g.id)
     {_FIRST} %(further)s) AS c
"""
FIRST_OF_TURNS = f"""
SELECT g.type, c.* FROM json_to_recordset(%(turns)s::json) AS g(queue text, type text, priority smallint, key text,
                                                               most integer) CROSS JOIN LATERAL (
    SELECT fair_key, {_DUE}, id, concurrency_key FROM job_queue
     WHERE {_OF_GROUP} AND fair_key IS NOT NULL AND fair_key = g.key AND scheduled_at <= @now
     {_IN_TURN} LIMIT g.most) AS c
"""
KEYS_OF = "SELECT id, fair_key FROM job_queue WHERE id = ANY(%(ids)s)"
ADD = """
INSERT INTO job_queue_turn (queue, priority, key, count, finish, clock, served_at)
SELECT queue, priority, key, jobs, finish, clock, @now
  FROM json_to_recordset(%(lines)s::json)
    AS r(queue text, priority smallint, key text, jobs integer, finish float8, clock float8)
RETURNING id
"""
# The oldest lines have the lowest numbers. A line of the future was stored while the clock was wrong.
PRUNE = """
DELETE FROM job_queue_turn WHERE id = ANY(ARRAY(
    SELECT id FROM (SELECT id, served_at FROM job_queue_turn ORDER BY id LIMIT 5000 FOR UPDATE SKIP LOCKED) AS oldest
     WHERE served_at < @now - %(kept)s * interval '1 second' OR served_at > @now + %(kept)s * interval '1 second'))
RETURNING id
"""
