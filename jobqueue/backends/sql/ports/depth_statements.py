"""The statements that count queued and running jobs up to a limit; the same for both databases.

What is not queued, and what is queued beyond a cap, costs nothing. Nothing is locked.
"""

from __future__ import annotations

from functools import cache

_QUEUED = "FROM job_queue WHERE status = 'queued'"
# A skip-scan over job_queue_ready_type (queue, type, priority, scheduled_at, id): no priority is above 10, so that what
# follows a queue and type is found without walking through their jobs. With `(queue, type) > (…)` SQLite would; and it
# would with bare columns on the other side, whose affinity keeps it from comparing more than the first of the three.
_NEXT = f"{_QUEUED} AND (queue, type, priority) >= (coalesce(kinds.queue, ''), coalesce(kinds.type, ''), 11)"
_IN_ORDER = "ORDER BY queue, type, priority, scheduled_at, id LIMIT 1"


def _arms(condition: str, limit: str) -> str:
    """One range per priority: else what is due would be looked for among all that is not.

    In order, and with a limit each, so that no planner gathers a range before it counts the first of it. Nor is it told
    which priority: else Postgres, where it knows nothing of the table yet, takes the claim's index, in which all queues
    and types lie together.
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
    """List the queues and types of which jobs wait, at most so many."""
    return f"{_kinds(most)} SELECT queue, type FROM kinds WHERE queue IS NOT NULL"


@cache
def waiting(most: int) -> str:
    """Count what is due and what is not, of each queue and type, at most so many of them; and find the oldest due."""
    return f"""{_kinds(most)}
SELECT queue, type, {_counted("scheduled_at <= %(now)s")}, {_counted("scheduled_at > %(now)s")},
       (SELECT min(scheduled_at) FROM ({_arms("scheduled_at <= %(now)s", "1")}) AS firsts)
  FROM kinds WHERE queue IS NOT NULL
"""


# Over job_queue_leased (lease_until): running jobs are few; of those that a foreign program left behind, the first.
# Postgres, told how many, would gather and sort them all where it knows nothing of the table yet; so it is not told.
RUNNING = """
SELECT queue, type, count(*)
  FROM (SELECT queue, type FROM job_queue WHERE status = 'in_progress'
         ORDER BY lease_until LIMIT (SELECT CAST(%(limit)s AS integer))) AS running
 GROUP BY queue, type
"""
