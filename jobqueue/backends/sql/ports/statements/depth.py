"""The statements for both databases that count queued and running jobs up to a limit.

The statements read no jobs that have ended, and no more jobs than the limit. They lock nothing.
"""

from __future__ import annotations

from functools import cache

_QUEUED = "FROM job_queue WHERE status = 'queued'"
# A skip-scan over job_queue_ready_type (queue, type, priority, scheduled_at, id). No priority is above 10, so it finds
# the next queue and type without reading the jobs of the last one. With `(queue, type) > (…)`, SQLite would read them.
# It would also read them without coalesce(): because of the columns' affinity, it would compare only the queue.
_NEXT = f"{_QUEUED} AND (queue, type, priority) >= (coalesce(kinds.queue, ''), coalesce(kinds.type, ''), 11)"
_IN_ORDER = "ORDER BY queue, type, priority, scheduled_at, id LIMIT 1"


def _arms(condition: str, limit: str) -> str:
    """Return one SELECT per priority. A single one would look for due jobs among all that are not due.

    Each SELECT has an order and a limit, so that the planner doesn't read a whole range before it counts the first
    rows. The priority is in a subquery: without statistics, Postgres would otherwise use the index for claims, which
    has all queues and types together.
    """
    return " UNION ALL ".join(
        f"SELECT * FROM (SELECT scheduled_at {_QUEUED} AND queue = kinds.queue AND type = kinds.type "
        f"AND priority = (SELECT {priority}) AND {condition} ORDER BY scheduled_at, id LIMIT {limit}) AS arm{priority}"
        for priority in range(1, 11)
    )


def _counted(condition: str) -> str:
    return f"(SELECT count(*) FROM ({_arms(condition, '%(limit)s')} LIMIT %(limit)s) AS counted)"


def _kinds(most: int) -> str:
    return f"""
WITH RECURSIVE kinds(place, queue, type) AS (
    SELECT 1, (SELECT queue {_QUEUED} {_IN_ORDER}), (SELECT type {_QUEUED} {_IN_ORDER})
    UNION ALL
    SELECT place + 1, (SELECT queue {_NEXT} {_IN_ORDER}), (SELECT type {_NEXT} {_IN_ORDER})
      FROM kinds WHERE queue IS NOT NULL AND place < {most}
)
"""


@cache
def kinds(most: int) -> str:
    """Return SQL that lists at most ``most`` pairs of queue and type with queued jobs."""
    return f"{_kinds(most)} SELECT queue, type FROM kinds WHERE queue IS NOT NULL"


@cache
def waiting(most: int) -> str:
    """Return SQL that counts due and later jobs, and finds the oldest due one, for each pair that ``kinds`` lists."""
    return f"""{_kinds(most)}
SELECT queue, type, {_counted("scheduled_at <= %(now)s")}, {_counted("scheduled_at > %(now)s")},
       (SELECT min(scheduled_at) FROM ({_arms("scheduled_at <= %(now)s", "1")}) AS firsts)
  FROM kinds WHERE queue IS NOT NULL
"""


# Over job_queue_leased (lease_until). There are few running jobs, unless another program left many behind. The limit is
# in a subquery: without statistics, Postgres would otherwise read and sort all running jobs.
RUNNING = """
SELECT queue, type, count(*)
  FROM (SELECT queue, type FROM job_queue WHERE status = 'in_progress'
         ORDER BY lease_until LIMIT (SELECT CAST(%(limit)s AS integer))) AS running
 GROUP BY queue, type
"""
