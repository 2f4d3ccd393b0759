"""The statements by which Postgres stores drafts, and the locks of the lanes of ordered queues."""

from __future__ import annotations

from functools import cache

#: The columns that a draft may set, and their types; the moments last, as the statement needs them.
DRAFTED = {
    "id": "text",
    "type": "text",
    "queue": "text",
    "priority": "smallint",
    "payload": "jsonb",
    "payload_version": "integer",
    "idempotency_key": "text",
    "unique_key": "text",
    "max_retries": "integer",
    "tenant": "text",
    "workspace": "text",
    "parent_id": "text",
    "timeout": "double precision",
    "context": "jsonb",
    "concurrency_key": "text",
    "fair_key": "text",
    "parallel": "boolean",
    "lane": "text",
    "expires_at": "timestamptz",
    "scheduled_at": "timestamptz",
    "delay": "double precision",
}


# A job gets its position while its transaction holds the lock of the lane. So positions are in the order of commits,
# and whoever sees a job sees all jobs before it. Several locks are taken in one order, so producers can't deadlock.
NEXT_POSITION = "nextval('job_queue_lane_position')"
LANE_LOCK = "hashtextextended('job_queue lane ' || length({queue}) || ' ' || {queue} || {lane}, 0)"
LOCK_LANES = f"""
WITH lanes AS MATERIALIZED (
    SELECT DISTINCT {LANE_LOCK.format(queue="queue", lane="lane")} AS lock
      FROM json_to_recordset(%s::json) AS r(queue text, lane text) ORDER BY lock),
locked AS MATERIALIZED (SELECT pg_advisory_xact_lock(lock)::text AS done FROM lanes)
"""
LOCKED_LANES = f"{LOCK_LANES} SELECT count(done) FROM locked"
#: Locks the lanes that no other transaction has locked, and returns them.
FREE_LANES = f"""
SELECT queue, lane FROM json_to_recordset(%s::json) AS r(queue text, lane text)
 WHERE pg_try_advisory_xact_lock({LANE_LOCK.format(queue="queue", lane="lane")})
"""
_ONCE_LOCKED = "(SELECT count(done) FROM locked) AS locks"


@cache
def insert_statement(common: tuple[str, ...], each: tuple[str, ...], end: str) -> str:
    """Return the statement that stores drafts.

    A column with one value for all drafts is a parameter. The others travel together as one parameter of JSON. Columns
    that no draft sets are left out. ``end`` says what happens if a key is taken.

    If a draft has a lane, all have. Then the first parameter has the lanes as JSON, to be locked.
    """
    said = {name: f"%s::{DRAFTED[name]}" for name in common} | {name: f"{name}::{DRAFTED[name]}" for name in each}
    moments = [said.pop("scheduled_at")] if "scheduled_at" in said else []
    if "delay" in said:
        moments.append(f"@now + {said.pop('delay')} * interval '1 second'")
    said |= {"scheduled_at": f"coalesce({', '.join([*moments, '@now'])})", "created_at": "@now", "updated_at": "@now"}
    # JSON within JSON travels as text.
    fields = ", ".join(f"{name} {DRAFTED[name].replace('jsonb', 'text')}" for name in each)
    source = f"json_to_recordset(%s::json) AS d({fields})" if each else ""
    if "lane" in said:
        said["lane_position"] = NEXT_POSITION
        source = f"{source} CROSS JOIN {_ONCE_LOCKED}" if source else _ONCE_LOCKED
    values = ", ".join(said.values())
    rows = f"SELECT {values} FROM {source}" if source else f"VALUES ({values})"
    locks = LOCK_LANES if "lane" in said else ""
    return f"{locks}INSERT INTO job_queue ({', '.join(said)}) {rows} {end}"
