"""The statements of SQLite. They have named parameters in place of the columns of ``v`` in shared statements."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from jobqueue.backends.sql.statements import (
    CLAIM_COLUMNS,
    COUNT_ATTEMPT,
    EXPIRE_SET,
    INSERT_COLUMNS,
    LAPSE_SET,
    RAN_OUT_COLUMNS,
)
from jobqueue.backends.sql.statements import HELD as HELD_BY
from jobqueue.backends.sql.statements import SETTLE as SETTLE_SET
from jobqueue.clock import to_text
from jobqueue.records import Draft

#: The placeholders of the columns that a draft sets.
MARKS = ", ".join(["%s"] * len(INSERT_COLUMNS.split(",")))
INSERT = f"INSERT INTO job_queue ({INSERT_COLUMNS}) VALUES ({MARKS}) ON CONFLICT DO NOTHING"
INSERT_RAW = INSERT.replace("%s", "?")
# The indexes of a lane's jobs, and those that run. Another program may have written the largest number. `likelihood`
# keeps SQLite from searching by this condition of the indexes instead of `lane = …`.
_OF_LANE = "likelihood(lane > '', 1.0) AND lane_position IS NOT NULL AND queue = %s AND lane = %s"
_IN_LANE = tuple(
    f"{condition} AND {_OF_LANE}"
    for condition in (
        "status = 'queued' AND scheduled_at <= updated_at",
        "status = 'queued' AND scheduled_at > updated_at",
        "status = 'dead_letter'",
        "status = 'in_progress' AND lease_until > ''",
    )
)
_LAST_PLACES = ", ".join(
    f"coalesce((SELECT max(lane_position) FROM job_queue WHERE {one} AND lane_position < {1 << 62}), 0)"
    for one in _IN_LANE
)
#: The next position in a lane: after all others, and in the order of time. The statement that computes it holds the
#: write lock, so positions are in the order of commits.
NEXT_POSITION = f"max(%s, 1 + max({_LAST_PLACES}))"
INSERT_IN_LANE = (
    f"INSERT INTO job_queue ({INSERT_COLUMNS}, lane, lane_position) "
    f"VALUES ({MARKS}, %s, {NEXT_POSITION}) ON CONFLICT DO NOTHING"
)

HELD = HELD_BY.replace("v.", ":")
# With positions instead of names, because looking names up takes a tenth of a frequent statement's time.
HELD_BY_PLACE = HELD.replace(":id", "?").replace(":fence", "?").replace(":owner", "?")
COMPLETE = f"""
UPDATE job_queue AS j SET status = 'completed', result = ?, completed_at = ?, updated_at = ?,
       completed_by = lease_owner, lease_owner = NULL, lease_until = NULL WHERE {HELD_BY_PLACE}
"""
SETTLE = f"UPDATE job_queue AS j SET {SETTLE_SET.replace('v.', ':')} WHERE {HELD}"
EXTEND = f"UPDATE job_queue AS j SET lease_until = :until WHERE {HELD} RETURNING cancel_requested_at"
TAKE = f"""
UPDATE job_queue SET status = 'in_progress', lease_owner = ?, lease_until = ?, started_at = ?, updated_at = ?,
       attempts = {COUNT_ATTEMPT}, fence = fence + 1, cancel_requested_at = NULL, end_reason = NULL
 WHERE rowid = ?
"""
LAPSE = f"UPDATE job_queue SET {LAPSE_SET}, completed_at = ?, updated_at = ? WHERE rowid = ?"

# The condition of the index job_queue_ready. `likelihood` says that it is always true. Otherwise, on an analysed table,
# SQLite would search by this condition instead of `priority = …`, and sort all jobs.
_READY_INDEX = "likelihood(priority > 0, 1.0)"
# The columns of a claim, with the values that they will have after the claim.
_CLAIM = CLAIM_COLUMNS.replace("attempts", COUNT_ATTEMPT).replace("fence", "fence + 1").replace("lease_owner", ":owner")
# One SELECT per priority, each a range of the index job_queue_ready (priority, scheduled_at, id). A single range would
# include all future jobs of better priorities. SQLite merges the SELECTs in order and stops at the limit.
_ARM = (
    f"SELECT rowid, {_CLAIM} FROM job_queue "
    f"WHERE status = 'queued' AND {_READY_INDEX} AND priority = {{priority}} AND scheduled_at <= :now"
)
READY = (
    " UNION ALL ".join(_ARM.format(priority=priority) for priority in range(1, 11))
    + " ORDER BY priority, scheduled_at, id LIMIT :limit"
)
# Whether any job is due. This takes half as long as reading the first one.
IS_DUE = "SELECT " + " OR ".join(
    f"EXISTS (SELECT 1 FROM job_queue WHERE status = 'queued' AND {_READY_INDEX} AND priority = {priority} "
    "AND scheduled_at <= :now)"
    for priority in range(1, 11)
)
# READY for one queue, type and priority, over job_queue_ready_type.
READY_OF = (
    f"SELECT rowid, {_CLAIM} FROM job_queue WHERE status = 'queued' AND queue = :queue AND type = :type "
    "AND priority = :priority AND scheduled_at <= :now ORDER BY scheduled_at, id LIMIT :limit"
)
READY_BY_ID = f"SELECT rowid, {_CLAIM} FROM job_queue WHERE id IN (SELECT value FROM json_each(:ids))"
# A skip-scan over job_queue_ready_type: the first job of the next queue, type and priority. With `> (…)`, SQLite would
# start at the current group and read all its jobs.
NEXT_GROUP = (
    "SELECT queue, type, priority, scheduled_at, id FROM job_queue WHERE status = 'queued' "
    "AND (queue, type, priority) >= (?, ?, ? + 1) ORDER BY queue, type, priority, scheduled_at, id LIMIT 1"
)
NEXT_DUE = " UNION ALL ".join(
    f"SELECT * FROM (SELECT scheduled_at FROM job_queue WHERE status = 'queued' AND {_READY_INDEX} "
    f"AND priority = {priority} AND scheduled_at > :now ORDER BY scheduled_at LIMIT 1)"
    for priority in range(1, 11)
)
PAUSES = "SELECT scope, name FROM job_queue_pause"
# Over job_queue_leased (lease_until).
RAN_OUT = (
    f"SELECT {RAN_OUT_COLUMNS}, lease_until FROM job_queue "
    "WHERE status = 'in_progress' AND lease_until < ? ORDER BY lease_until, id LIMIT ?"
)
# What a worker holds: a walk over job_queue_leased, which has the running jobs alone.
HELD_ROWS = (
    f"SELECT {RAN_OUT_COLUMNS} FROM job_queue "
    "WHERE status = 'in_progress' AND lease_until > '' AND lease_owner = ? LIMIT ?"
)
# Over job_queue_expiring (expires_at).
EXPIRE = f"""
UPDATE job_queue SET {EXPIRE_SET}, completed_at = :now, updated_at = :now
 WHERE rowid IN (SELECT rowid FROM job_queue WHERE status = 'queued' AND expires_at IS NOT NULL AND expires_at <= :now
                  ORDER BY expires_at LIMIT :limit)
RETURNING id
"""


def next_position_values(queue: str, lane: str, now: datetime) -> tuple[Any, ...]:
    """Return the parameters of NEXT_POSITION."""
    return (int(now.timestamp() * 1_000_000), *(queue, lane) * len(_IN_LANE))


def values_in_lane(draft: Draft, now: datetime) -> tuple[Any, ...]:
    """Return the parameters of INSERT_IN_LANE."""
    lane = str(draft.lane)
    return (
        *values_to_insert(draft, now),
        lane,
        *next_position_values(draft.queue, lane, now),
    )


def values_to_insert(draft: Draft, now: datetime) -> tuple[Any, ...]:
    """Return the parameters of INSERT."""
    written = to_text(now)
    due_at = to_text(draft.scheduled_at) if draft.scheduled_at else to_text(now + draft.wait) if draft.wait else written
    return (
        draft.id,
        draft.type,
        draft.queue,
        draft.priority,
        draft.payload,
        draft.payload_version,
        draft.idempotency_key,
        draft.unique_key,
        draft.max_retries,
        draft.tenant,
        draft.workspace,
        draft.parent_id,
        draft.timeout.total_seconds() if draft.timeout else None,
        draft.context,
        draft.concurrency_key,
        draft.fair_key,
        draft.parallel is not False,
        to_text(draft.expires_at) if draft.expires_at else None,
        due_at,
        written,
        written,
    )
