"""The statements for claims in ordered queues on Postgres, each a few ranges of an index."""

from __future__ import annotations

from jobqueue.backends.postgresql.insert_statements import LANE_LOCK, NEXT_POSITION
from jobqueue.records import Hold

_IN_LANE = "lane > '' AND lane_position IS NOT NULL"
# The conditions of the indexes job_queue_lane_due, job_queue_lane_later and job_queue_lane_waiting, and
# job_queue_lane_dead.
_DUE = f"status = 'queued' AND {_IN_LANE} AND scheduled_at <= updated_at"
_LATER = f"status = 'queued' AND {_IN_LANE} AND scheduled_at > updated_at"
_DEAD = f"status = 'dead_letter' AND {_IN_LANE}"

# Over job_queue_ready_type: some due jobs of a group, and of those without a place what says their lane. The SELECT
# keeps out the index job_queue_ready, which can serve a priority that is known to be above 0.
UNPLACED = f"""
SELECT scheduled_at, id, NOT coalesce({_IN_LANE}, FALSE), queue,
       CASE WHEN coalesce({_IN_LANE}, FALSE) THEN '' ELSE payload::text END, tenant
  FROM job_queue
 WHERE status = 'queued' AND queue = %(queue)s AND type = %(type)s AND priority = (SELECT %(priority)s::smallint)
   AND scheduled_at <= @now AND (scheduled_at, id) > (%(due_at)s::timestamptz, %(id)s)
 ORDER BY scheduled_at, id LIMIT %(most)s
"""
# A job gets its position as one that is enqueued does. If a producer holds the lock of a lane, its jobs come first.
PLACE = f"""
WITH lanes AS MATERIALIZED (
    SELECT queue, lane, ids FROM json_to_recordset(%(lanes)s::json) AS r(queue text, lane text, ids json)
     WHERE pg_try_advisory_xact_lock({LANE_LOCK.format(queue="queue", lane="lane")})),
placed AS MATERIALIZED (
    SELECT id, lane, {NEXT_POSITION} AS position
      FROM lanes CROSS JOIN LATERAL json_array_elements_text(ids) WITH ORDINALITY AS one(id, number)),
free AS MATERIALIZED (
    SELECT f.id FROM (SELECT id FROM placed ORDER BY id) AS p CROSS JOIN LATERAL (
        SELECT id FROM job_queue AS j WHERE j.id = p.id AND j.status = 'queued' FOR UPDATE SKIP LOCKED) AS f)
UPDATE job_queue AS j SET lane = p.lane, lane_position = p.position FROM placed AS p
 WHERE j.id = p.id AND j.id = ANY(ARRAY(SELECT id FROM free)) RETURNING j.id
"""
# Over job_queue_lane_later. A job is due if its last change was at or after the moment for which it is scheduled.
MOVE_DUE = f"""
UPDATE job_queue SET updated_at = @now WHERE id = ANY(ARRAY(
    SELECT c.id FROM unnest(%(queues)s::text[]) AS w(queue) CROSS JOIN LATERAL (
        SELECT id FROM job_queue WHERE {_LATER} AND queue = w.queue AND scheduled_at <= @now
         ORDER BY queue, scheduled_at, id LIMIT %(most)s FOR UPDATE SKIP LOCKED) AS c))
RETURNING id
"""
_NEXT = """
    SELECT lane FROM job_queue WHERE @condition AND queue = {queue} AND lane > {after}
     ORDER BY queue, lane, lane_position, id LIMIT 1"""
# A skip-scan over job_queue_lane_due (queue, lane, lane_position, id).
_NEXT_LANES = f"""
WITH RECURSIVE found AS (
    (SELECT w.queue, n.lane, 1 AS number FROM json_to_recordset(%(after)s::json) AS w(queue text, lane text)
      CROSS JOIN LATERAL ({_NEXT.format(queue="w.queue", after="w.lane")}) AS n)
    UNION ALL
    SELECT f.queue, n.lane, f.number + 1 FROM found AS f
     CROSS JOIN LATERAL ({_NEXT.format(queue="f.queue", after="f.lane")}) AS n
     WHERE f.number < %(most)s)
SELECT queue, lane FROM found ORDER BY queue, lane
"""
NEXT_LANES = {
    hold: _NEXT_LANES.replace("@condition", condition)
    for hold, condition in ((Hold.IS_DUE, _DUE), (Hold.WAITS, _LATER), (Hold.IS_DEAD, _DEAD))
}
# The same with locks that end with the transaction. Those of producers are others, and may be held for long.
CLAIM_LOCK = LANE_LOCK.format(queue="queue", lane="lane").replace("lane '", "claim '", 1)
LOCK_NEXT = NEXT_LANES[Hold.IS_DUE].replace(
    "SELECT queue, lane FROM found ORDER BY queue, lane",
    f"SELECT queue, lane, pg_try_advisory_xact_lock({CLAIM_LOCK}) FROM found ORDER BY queue, lane",
)
_JOB = (
    "lane_position, id, queue, lane, type, concurrency_key, priority, extract(epoch FROM scheduled_at)::float8, "
    "parallel"
)
_LANE = "queue = w.queue AND lane = w.lane"
_FIRST = "ORDER BY queue, lane, lane_position, id LIMIT"
# Over job_queue_leased, which has the running jobs alone.
_RUNNING = f"""FROM job_queue
 WHERE status = 'in_progress' AND lease_until > '-infinity' AND queue = ANY(%(queues)s) AND {_IN_LANE}"""
# The next statement after the locks, which sees what their earlier holders have committed. Of the running jobs, it
# reads one of each lane: a barrier, if one runs.
STATES = f"""
WITH w AS MATERIALIZED (
    SELECT * FROM json_to_recordset(%(lanes)s::json) AS r(queue text, lane text, is_strict boolean))
SELECT '{Hold.IS_DUE}', c.* FROM w CROSS JOIN LATERAL (
    SELECT {_JOB} FROM job_queue WHERE {_DUE} AND {_LANE} AND scheduled_at <= @now {_FIRST} %(most)s) AS c
 UNION ALL
SELECT c.* FROM w CROSS JOIN LATERAL (
    (SELECT '{Hold.WAITS}', {_JOB} FROM job_queue WHERE {_LATER} AND {_LANE} {_FIRST} 1)
    UNION ALL
    (SELECT '{Hold.IS_DEAD}', {_JOB} FROM job_queue WHERE {_DEAD} AND {_LANE} {_FIRST} 1)) AS c
 WHERE w.is_strict
 UNION ALL
SELECT '{Hold.RUNS}', r.* FROM (
    SELECT DISTINCT ON (queue, lane) {_JOB} {_RUNNING}
       AND id || ' ' || fence || ' ' || coalesce(lease_owner, '') <> ALL(%(ended)s::text[])
     ORDER BY queue, lane, parallel) AS r
"""
RUNNING_IDS = f"SELECT queue, lane, id {_RUNNING}"
DEPTHS = f"""
SELECT w.queue, w.lane, due.count + later.count
  FROM json_to_recordset(%(lanes)s::json) AS w(queue text, lane text)
 CROSS JOIN LATERAL (SELECT count(*) FROM (
    SELECT 1 FROM job_queue WHERE {_DUE} AND {_LANE} {_FIRST} %(most)s) AS d) AS due
 CROSS JOIN LATERAL (SELECT count(*) FROM (
    SELECT 1 FROM job_queue WHERE {_LATER} AND {_LANE} {_FIRST} %(most)s) AS d) AS later
"""
