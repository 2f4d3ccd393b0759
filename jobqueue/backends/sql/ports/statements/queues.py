"""The statement that names the queues of jobs that aren't completed; the same for both databases.

One probe leads from a queue to the next, however many jobs each has. Completed jobs cost nothing. Nothing is locked.
"""

from __future__ import annotations

#: The statuses whose partial index begins with the queue: job_queue_ready_type, job_queue_dead and job_queue_failed.
_BY_QUEUE = ("queued", "dead_letter", "failed")


def _named(status: str) -> tuple[str, str]:
    """Return the common table expression that walks from queue to queue, and the statement that reads it."""
    first = f"SELECT queue FROM job_queue WHERE status = '{status}'"
    walk = f"""
{status}(place, queue) AS (
    SELECT 1, ({first} ORDER BY queue, type LIMIT 1)
    UNION ALL
    SELECT place + 1, ({first} AND queue > {status}.queue ORDER BY queue, type LIMIT 1)
      FROM {status} WHERE queue IS NOT NULL AND place < %(limit)s
)"""
    return walk, f"SELECT queue FROM {status} WHERE queue IS NOT NULL"


_WALKS, _READS = zip(*map(_named, _BY_QUEUE), strict=True)
# Over job_queue_leased (lease_until): running jobs are few; of those that a foreign program left behind, the first.
_RUNNING = """
SELECT queue FROM (SELECT queue FROM job_queue WHERE status = 'in_progress'
                    ORDER BY lease_until LIMIT (SELECT CAST(%(limit)s AS integer))) AS running
"""
NAMED = f"WITH RECURSIVE {', '.join(_WALKS)} {' UNION '.join((*_READS, _RUNNING))}"
