"""The part of a claim that joins the chosen jobs with others on Postgres."""

from __future__ import annotations

# The jobs under limits that were chosen, and of these and the others the first ones, in the order of claims.
WITH_CHOSEN = """,
limited AS MATERIALIZED (
    SELECT j.* FROM unnest(%(chosen)s::text[]) AS c(id) CROSS JOIN LATERAL (
        SELECT id, expires_at, fence FROM job_queue AS j
         WHERE j.id = c.id AND j.status = 'queued' AND j.scheduled_at <= @now FOR UPDATE SKIP LOCKED) AS j),
mine AS MATERIALIZED (
    SELECT m.* FROM (SELECT * FROM unlimited UNION ALL SELECT * FROM limited) AS m CROSS JOIN LATERAL (
        SELECT priority, scheduled_at FROM job_queue WHERE job_queue.id = m.id OFFSET 0) AS place
     ORDER BY place.priority, place.scheduled_at, m.id LIMIT %(limit)s)
"""
# The same if some of the chosen jobs take the places of others.
WITH_PLACES = WITH_CHOSEN.replace(
    "SELECT priority, scheduled_at FROM job_queue WHERE job_queue.id = m.id",
    "SELECT priority, scheduled_at, id FROM job_queue WHERE job_queue.id = coalesce(%(places)s::json ->> m.id, m.id)",
).replace("place.scheduled_at, m.id", "place.scheduled_at, place.id")
