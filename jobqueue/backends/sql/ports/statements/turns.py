"""The statements that read the turns of fair queues, for both databases."""

from __future__ import annotations

_OF_GROUP = "status = 'queued' AND queue = %(queue)s AND type = %(type)s AND priority = %(priority)s"
_IN_TURN = "ORDER BY queue, type, priority, fair_key, scheduled_at, id LIMIT"
_IN_LINE = "ORDER BY queue, type, priority, scheduled_at, id LIMIT"
# A skip-scan over job_queue_ready_type. One queue hardly ever has more types.
TYPES = """
WITH RECURSIVE types(type, n) AS (
    SELECT (SELECT type FROM job_queue WHERE status = 'queued' AND queue = %(queue)s ORDER BY queue, type LIMIT 1), 1
    UNION ALL
    SELECT (SELECT type FROM job_queue WHERE status = 'queued' AND queue = %(queue)s AND type > types.type
             ORDER BY queue, type LIMIT 1), n + 1 FROM types WHERE type IS NOT NULL AND n < 50)
SELECT type FROM types WHERE type IS NOT NULL
"""
# A skip-scan over job_queue_ready_turn, with the first due job of each turn.
_FIRST_OF_TURN = f"""
    FROM job_queue AS j WHERE {_OF_GROUP} AND j.fair_key IS NOT NULL AND j.fair_key = turns.fair_key
     AND scheduled_at <= %(now)s ORDER BY queue, type, priority, j.fair_key, scheduled_at, id LIMIT 1
"""
TURNS = f"""
WITH RECURSIVE turns(fair_key, n) AS (
    SELECT (SELECT fair_key FROM job_queue
             WHERE {_OF_GROUP} AND fair_key IS NOT NULL AND fair_key >= %(after)s {_IN_TURN} 1), 1
    UNION ALL
    SELECT (SELECT j.fair_key FROM job_queue AS j
             WHERE {_OF_GROUP} AND j.fair_key IS NOT NULL AND j.fair_key > turns.fair_key
             ORDER BY queue, type, priority, j.fair_key LIMIT 1), n + 1
      FROM turns WHERE fair_key IS NOT NULL AND n < %(most)s)
SELECT fair_key, (SELECT scheduled_at {_FIRST_OF_TURN}), (SELECT id {_FIRST_OF_TURN})
  FROM turns WHERE fair_key IS NOT NULL
"""
# The due jobs of a turn, and those before a place.
WAITING = f"""
SELECT count(*) FROM (
    SELECT 1 FROM job_queue WHERE {_OF_GROUP} AND fair_key IS NOT NULL AND fair_key = %(key)s
       AND scheduled_at <= %(now)s {_IN_TURN} %(most)s) AS found
"""
BEFORE = f"""
SELECT count(*) FROM (
    SELECT 1 FROM job_queue WHERE {_OF_GROUP} AND fair_key IS NOT NULL AND fair_key = %(key)s
       AND (scheduled_at, id) < (%(due_at)s, %(id)s) {_IN_TURN} %(most)s) AS found
"""
# The jobs without a stored value among the first due ones of a group.
WITHOUT = f"""
SELECT NULL, scheduled_at, id FROM (
    SELECT scheduled_at, id, fair_key FROM job_queue WHERE {_OF_GROUP} AND scheduled_at <= %(now)s
     {_IN_LINE} %(most)s) AS found
 WHERE fair_key IS NULL ORDER BY scheduled_at, id
"""
WITHOUT_BEFORE = f"""
SELECT count(*) FROM (
    SELECT fair_key FROM job_queue WHERE {_OF_GROUP} AND (scheduled_at, id) < (%(due_at)s, %(id)s)
     {_IN_LINE} %(most)s) AS found
 WHERE fair_key IS NULL
"""
