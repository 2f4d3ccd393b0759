"""The parts of statements that both databases share."""

from __future__ import annotations

from jobqueue.models.job import MOST_COUNTED

INSERT_COLUMNS = (
    "id, type, queue, priority, payload, payload_version, idempotency_key, unique_key, max_retries, tenant, "
    "workspace, parent_id, timeout, context, expires_at, scheduled_at, created_at, updated_at"
)

#: In the order of ``Claim``.
CLAIM_COLUMNS = (
    "id, type, queue, payload, payload_version, attempts, max_retries, fence, lease_owner, tenant, workspace, "
    "parent_id, context, priority, scheduled_at, created_at, expires_at, timeout, crash_count"
)

#: The fence: only the holder of the job's newest claim passes, and only while it holds it. coalesce() keeps Postgres
#: from using statistics of the two columns. It would expect that hardly any row has a lease owner, put that side of the
#: join outside, and compare every settlement with every running job.
HELD = (
    "j.id = v.id AND j.fence = v.fence "
    "AND coalesce(j.lease_owner, '') = v.owner AND coalesce(j.status, '') = 'in_progress'"
)

#: How a claim counts. Another program may have written the highest number that there is room for.
COUNT_ATTEMPT = f"CASE WHEN attempts < {MOST_COUNTED} THEN attempts + 1 ELSE attempts END"
HAS_ROOM = f"fence < {MOST_COUNTED}"
_USED_UP = (
    f"unreadable: another program set its fence to {MOST_COUNTED}, which leaves no room for another claim. "
    "Enqueue a new job with the same payload."
)
#: How a job ends that came too late.
_EXPIRED = {"status": "failed", "end_reason": "expired"}
EXPIRE_SET = ", ".join(f"{column} = '{value}'" for column, value in _EXPIRED.items())
#: How a claim ends a job that it can't take: one that came too late, or one whose fence has no room for a claim.
LAPSE_SET = f"""
    status = CASE WHEN {HAS_ROOM} THEN '{_EXPIRED["status"]}' ELSE 'dead_letter' END,
    end_reason = CASE WHEN {HAS_ROOM} THEN '{_EXPIRED["end_reason"]}' ELSE 'unreadable' END,
    error = CASE WHEN {HAS_ROOM} THEN error ELSE '{_USED_UP}' END
"""

RAN_OUT_COLUMNS = "id, type, fence, coalesce(lease_owner, ''), attempts, max_retries, crash_count, queue"

#: A job whose holder offers anything but completion. Where an operator asked it to stop, it does not go back.
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
