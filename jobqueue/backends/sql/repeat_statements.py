"""The statements for calls that repeat with the same key: debounced and throttled jobs."""

from __future__ import annotations

from jobqueue.states import ACTIVE

_STATUSES = ", ".join(f"'{status}'" for status in sorted(ACTIVE))
#: The condition of the unique index. SQLite finds the index only by the same words in the same order.
_ACTIVE_KEY = f"status IN ({_STATUSES}) AND unique_key IS NOT NULL"

#: Takes the key from a running job, so that a job for what happened since it began can have it. coalesce() keeps
#: Postgres from walking through all running jobs, in the index of their leases.
RELEASE = (
    "UPDATE job_queue SET unique_key = NULL "
    f"WHERE unique_key = %s AND {_ACTIVE_KEY} AND coalesce(status, '') = 'in_progress'"
)

# The place of a job with the newest payload. In another lane it is the new place, which the INSERT drew for it. If the
# lane belongs to another queue, a claim gives the job its place.
_PLACE = (
    "CASE WHEN job_queue.queue <> excluded.queue THEN NULL "
    "WHEN job_queue.lane = excluded.lane THEN job_queue.{column} ELSE excluded.{column} END"
)

#: Which job stands for others with a throttled key.
STANDING = "SELECT job_id, type FROM job_queue_throttle WHERE key = %s"
REPLACE_STANDING = "UPDATE job_queue_throttle SET job_id = %s WHERE key = %s"
#: How many keys are deleted at once, in a transaction that holds SQLite's only write lock.
FORGOTTEN_AT_ONCE = 1_000


def move_instead(due_at: str, *, replace_payload: bool) -> str:
    """Return the end of an INSERT of a debounced job.

    If a job of the same type with the same key waits, the INSERT postpones that job instead.
    """
    newest = ("payload", "payload_version", "context", "concurrency_key", "fair_key")  # keys come from the payload
    payload = "".join(f", {column} = excluded.{column}" for column in newest)
    payload += "".join(f", {column} = {_PLACE.format(column=column)}" for column in ("lane", "lane_position"))
    return (
        f"ON CONFLICT (unique_key) WHERE ({_ACTIVE_KEY}) DO UPDATE SET scheduled_at = {due_at}, "
        f"updated_at = excluded.updated_at{payload if replace_payload else ''} "
        "WHERE job_queue.status = 'queued' AND job_queue.type = excluded.type RETURNING id, type, payload"
    )


def let_through(now: str, until: str) -> str:
    """Return SQL that lets a job through, and makes it stand for others until a moment, unless another one does."""
    return (
        f"INSERT INTO job_queue_throttle (key, type, job_id, until) VALUES (%s, %s, %s, {until}) "
        "ON CONFLICT (key) DO UPDATE SET type = excluded.type, job_id = excluded.job_id, until = excluded.until "
        f"WHERE job_queue_throttle.until <= {now} RETURNING job_id"
    )
