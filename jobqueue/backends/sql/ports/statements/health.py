"""The statements that read the queue's health; the same for both databases. Each reads a bounded part of an index."""

from __future__ import annotations

from functools import cache

_DEAD = "FROM job_queue WHERE status = 'dead_letter'"
_IN_ORDER = "ORDER BY queue, type, id LIMIT 1"
_FURTHER_TYPE = f"{_DEAD} AND queue = kinds.queue AND type > kinds.type {_IN_ORDER}"
_FURTHER_QUEUE = f"{_DEAD} AND queue > kinds.queue {_IN_ORDER}"
# Postgres, told how many, would gather and sort all rows where it knows nothing of the table yet; so it is not told.
_LIMIT = "LIMIT (SELECT CAST(%(limit)s AS integer))"


# A skip-scan over job_queue_dead (queue, type, id): first the next type of the same queue, then the next queue.
@cache
def _kinds(most: int) -> str:
    return f"""
WITH RECURSIVE kinds(place, queue, type) AS (
    SELECT 1, (SELECT queue {_DEAD} {_IN_ORDER}), (SELECT type {_DEAD} {_IN_ORDER})
    UNION ALL
    SELECT place + 1,
           coalesce((SELECT queue {_FURTHER_TYPE}), (SELECT queue {_FURTHER_QUEUE})),
           coalesce((SELECT type {_FURTHER_TYPE}), (SELECT type {_FURTHER_QUEUE}))
      FROM kinds WHERE queue IS NOT NULL AND place < {most}
)
"""


@cache
def dead_kinds(most: int) -> str:
    """List the queues and types that dead letters are of, at most so many."""
    return f"{_kinds(most)} SELECT queue, type FROM kinds WHERE queue IS NOT NULL"


@cache
def dead_letters(most: int) -> str:
    """Count the dead letters of each queue and type, up to a limit."""
    return f"""{_kinds(most)}
SELECT queue, type,
       (SELECT count(*) FROM (SELECT 1 {_DEAD} AND queue = kinds.queue AND type = kinds.type ORDER BY id {_LIMIT})
                          AS counted)
  FROM kinds WHERE queue IS NOT NULL
"""


# The end of a range of job_queue_dead (queue, type, id).
NEWEST_DEAD = f"""
SELECT id, completed_at {_DEAD} AND queue = %(queue)s AND type = %(type)s ORDER BY id DESC {_LIMIT}
"""

# Over job_queue_leased (lease_until).
LAPSED = f"""
SELECT coalesce(lease_owner, ''), count(*), min(lease_until)
  FROM (SELECT lease_owner, lease_until FROM job_queue WHERE status = 'in_progress' AND lease_until < %(before)s
         ORDER BY lease_until {_LIMIT}) AS lapsed
 GROUP BY 1 ORDER BY 3
"""

# Over job_queue_leased (lease_until): running jobs are few. A report of an earlier attempt is older than this attempt.
QUIET = f"""
SELECT id, type, queue, coalesce(lease_owner, ''), updated_at
  FROM (SELECT id, type, queue, lease_owner, updated_at, started_at, progress FROM job_queue
         WHERE status = 'in_progress' ORDER BY lease_until {_LIMIT}) AS running
 WHERE progress IS NOT NULL AND updated_at < %(before)s AND updated_at > started_at
 ORDER BY updated_at LIMIT %(most)s
"""


def _end(priority: int, direction: str) -> str:
    # Nor is Postgres told which priority: see ``depth``.
    return (
        "SELECT * FROM (SELECT tenant FROM job_queue WHERE status = 'queued' AND queue = %(queue)s AND type = %(type)s "
        f"AND priority = (SELECT {priority}) AND scheduled_at <= %(now)s "
        f"ORDER BY scheduled_at {direction}, id {direction} LIMIT %(limit)s) AS {direction.lower()}{priority}"
    )


# Both ends of each range of job_queue_ready_type (queue, type, priority, scheduled_at, id).
_ENDS = " UNION ALL ".join(_end(priority, direction) for priority in range(1, 11) for direction in ("ASC", "DESC"))
TENANTS = f"SELECT coalesce(tenant, ''), count(*) FROM ({_ENDS}) AS sample GROUP BY 1"
