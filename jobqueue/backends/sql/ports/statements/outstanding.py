"""The statements that list running and queued jobs; the same for both databases. Each reads a range of an index."""

from __future__ import annotations

from functools import cache

# Postgres, told how many, would gather and sort all rows where it knows nothing of the table yet; so it is not told.
_LIMIT = "LIMIT (SELECT CAST(%(limit)s AS integer))"

# Over job_queue_leased (lease_until).
RUNNING = f"""
SELECT id, type, queue, coalesce(lease_owner, ''), attempts, started_at, updated_at, lease_until,
       cancel_requested_at, timeout, progress IS NOT NULL
  FROM job_queue WHERE status = 'in_progress' ORDER BY lease_until {_LIMIT}
"""

_ORDER = "queue, type, priority, scheduled_at, id"
# Without its own name, the text of a moment would be what ORDER BY means.
_QUEUED = """
SELECT id, type, queue, coalesce(tenant, ''), CAST(payload AS text), payload_version, created_at,
       priority, CAST(scheduled_at AS text) AS due
  FROM job_queue WHERE status = 'queued'"""
# No priority is above 10. With `(queue, type) > (…)`, SQLite would read the jobs of that queue and type.
_AFTER_KIND = "(queue, type, priority) >= (%(queue)s, %(type)s, 11)"


@cache
def queued(after: str, moment: str) -> str:
    """Return SQL that reads a page over job_queue_ready_type: the first, or behind a "kind" or a "job".

    ``moment`` is the SQL type of a time.
    """
    conditions = {
        "": "",
        "kind": f" AND {_AFTER_KIND}",
        "job": f" AND ({_ORDER}) > (%(queue)s, %(type)s, %(priority)s, CAST(%(due)s AS {moment}), %(id)s)",
    }
    return f"{_QUEUED}{conditions[after]} ORDER BY {_ORDER} {_LIMIT}"
