"""The statements that read jobs under limits for people; the same for both databases."""

from __future__ import annotations


def _first(priority: int) -> str:
    # Postgres is not told which priority, nor how many: without statistics it would gather and sort whole ranges.
    return (
        "SELECT * FROM (SELECT concurrency_key, scheduled_at FROM job_queue WHERE status = 'queued' "
        f"AND queue = %(queue)s AND type = %(type)s AND priority = (SELECT {priority}) AND scheduled_at <= %(now)s "
        f"ORDER BY scheduled_at, id LIMIT (SELECT CAST(%(limit)s AS integer))) AS first{priority}"
    )


# The beginnings of ranges of job_queue_ready_type (queue, type, priority, scheduled_at, id).
FIRST_DUE = " UNION ALL ".join(_first(priority) for priority in range(1, 11))

STORED = """
SELECT scope, name, kind, number, per, key, reason, author, stored_at
  FROM job_queue_limit ORDER BY scope, name, kind, per, key
"""
