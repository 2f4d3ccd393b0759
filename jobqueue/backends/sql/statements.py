"""The parts of statements that both databases share."""

from __future__ import annotations

from jobqueue.models.job import MOST_COUNTED

INSERT_COLUMNS = (
    "id, type, queue, priority, payload, payload_version, idempotency_key, unique_key, max_retries, tenant, "
    "workspace, parent_id, timeout, context, concurrency_key, fair_key, parallel, expires_at, scheduled_at, "
    "created_at, updated_at"
)

#: The columns in the order of the fields of ``Claim``.
CLAIM_COLUMNS = (
    "id, type, queue, payload, payload_version, attempts, max_retries, fence, lease_owner, tenant, workspace, "
    "parent_id, context, priority, scheduled_at, created_at, expires_at, timeout, crash_count"
)

#: The fence: true only for the newest claim of a job, and only while it is held. coalesce() keeps Postgres from using
#: statistics of the two columns. From these, it would expect that hardly any row has a lease owner, and choose a join
#: that compares every settlement with every running job.
HELD = (
    "j.id = v.id AND j.fence = v.fence "
    "AND coalesce(j.lease_owner, '') = v.owner AND coalesce(j.status, '') = 'in_progress'"
)

#: The number of attempts after a claim. Another program may have written the highest number that the column holds.
COUNT_ATTEMPT = f"CASE WHEN attempts < {MOST_COUNTED} THEN attempts + 1 ELSE attempts END"
HAS_ROOM = f"fence < {MOST_COUNTED}"
_USED_UP = (
    f"unreadable: another program set its fence to {MOST_COUNTED}, which leaves no room for another claim. "
    "Enqueue a new job with the same payload."
)
#: The columns of a queued job that ended because it was past its expiry.
_EXPIRED = {"status": "failed", "end_reason": "expired"}
EXPIRE_SET = ", ".join(f"{column} = '{value}'" for column, value in _EXPIRED.items())
#: The columns of a job that a claim ends: it is past its expiry, or its fence has the highest number.
LAPSE_SET = f"""
    status = CASE WHEN {HAS_ROOM} THEN '{_EXPIRED["status"]}' ELSE 'dead_letter' END,
    end_reason = CASE WHEN {HAS_ROOM} THEN '{_EXPIRED["end_reason"]}' ELSE 'unreadable' END,
    error = CASE WHEN {HAS_ROOM} THEN error ELSE '{_USED_UP}' END
"""

RAN_OUT_COLUMNS = "id, type, fence, coalesce(lease_owner, ''), attempts, max_retries, crash_count, queue"

#: Whether a job goes back to its queue. It doesn't if an operator has cancelled it.
_GOES_BACK = "v.target = 'queued' AND j.cancel_requested_at IS NULL"
SETTLE = f"""
    status = CASE WHEN v.target = 'queued' AND j.cancel_requested_at IS NOT NULL THEN 'failed' ELSE v.target END,
    end_reason = CASE WHEN {_GOES_BACK} THEN NULL WHEN v.target = 'queued' THEN 'cancelled' ELSE v.end_reason END,
    scheduled_at = CASE WHEN {_GOES_BACK} THEN coalesce(v.due_at, j.scheduled_at) ELSE j.scheduled_at END,
    started_at = CASE WHEN {_GOES_BACK} THEN NULL ELSE j.started_at END,
    completed_at = CASE WHEN {_GOES_BACK} THEN NULL ELSE v.now END,
    result = v.result,
    error = coalesce(v.error, j.error),
    error_fingerprint = coalesce(v.fingerprint, j.error_fingerprint),
    attempts = j.attempts - v.refund,
    crash_count = CASE WHEN j.crash_count < {MOST_COUNTED} THEN j.crash_count + v.crashed ELSE j.crash_count END,
    lease_owner = NULL, lease_until = NULL, updated_at = v.now
"""
