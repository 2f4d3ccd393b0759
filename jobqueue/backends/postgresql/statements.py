"""The statements of Postgres. ``@now`` stands for statement_timestamp(), or the virtual clock of a test."""

from __future__ import annotations

from functools import cache

from jobqueue.backends.postgresql.claims.chosen import WITH_CHOSEN, WITH_PLACES
from jobqueue.backends.postgresql.floors.statements import IN_RANGE, RANGES, SPARING
from jobqueue.backends.sql.statements import (
    CLAIM_COLUMNS,
    COUNT_ATTEMPT,
    EXPIRE_SET,
    HAS_ROOM,
    HELD,
    LAPSE_SET,
    RAN_OUT_COLUMNS,
)
from jobqueue.backends.sql.statements import SETTLE as SETTLE_SET


def _only(what: str, **known: str) -> str:
    """Select a row in the shape of a claim that knows only some columns."""
    return f"SELECT '{what}', " + ", ".join(known.get(name, "NULL") for name in CLAIM_COLUMNS.split(", "))


# Not a join: one made up for an empty table would read a full one from end to end. What belongs to a row is looked up
# by its id and fence; coalesce() keeps out the index of running jobs, which would serve only while few are running. So
# in a worker's own session the array leaves no other way than the primary key, in the order of ids.
_IDS = "SELECT value ->> 'id' FROM jsonb_each(%(completions)s::jsonb)"
# Elsewhere the planner may take the rows as they lie on the disk, so their locks are taken first.
_LOCKED_IDS = f"SELECT id FROM job_queue WHERE id = ANY(ARRAY({_IDS})) ORDER BY id FOR UPDATE"
HELD_BY_KEY = """
   AND coalesce(j.lease_owner, '') = v.done -> (j.id || ' ' || j.fence) ->> 'owner'
   AND coalesce(j.status, '') = 'in_progress'
"""
COMPLETE = f"""
UPDATE job_queue AS j SET status = 'completed', result = (v.done -> (j.id || ' ' || j.fence) ->> 'result')::jsonb,
       completed_at = @now, updated_at = @now, completed_by = j.lease_owner, lease_owner = NULL, lease_until = NULL
  FROM (SELECT %(completions)s::jsonb AS done) AS v
 WHERE j.id = ANY(ARRAY({_IDS})){HELD_BY_KEY}RETURNING j.id, j.fence
"""
SETTLE = f"""
UPDATE job_queue AS j SET {SETTLE_SET}
  FROM (SELECT id, fence, owner, target, result::jsonb AS result, end_reason, error, fingerprint, refund, crashed,
               @now + delay * interval '1 second' AS due_at, @now AS now
          FROM json_to_recordset(%(settlements)s::json) AS r(
               id text, fence bigint, owner text, target text, result text, end_reason text, error text,
               fingerprint text, refund integer, crashed integer, delay double precision)) AS v
 WHERE {HELD} RETURNING j.id, j.fence
"""

MAY_RUN = """
    {row}.type = ANY(%(types)s) AND (%(queues)s::text[] IS NULL OR {row}.queue = ANY(%(queues)s))
    AND {row}.queue <> ALL(ARRAY(SELECT name FROM job_queue_pause WHERE scope = 'queue'))
    AND {row}.type <> ALL(ARRAY(SELECT name FROM job_queue_pause WHERE scope = 'type'))@unlimited
"""
# Leaves out queues under limits.
UNLIMITED = " AND queue NOT LIKE ALL(%(limited_queues)s)"
_IS_FRESH = f"(expires_at IS NULL OR expires_at > @now) AND {HAS_ROOM}"

# Locks the first rows in order, skipping those another worker holds. One arm per priority keeps each arm an index range
# over job_queue_ready (priority, scheduled_at, id); a single range would walk every future job of a better priority.
FIRST = f"""
head AS MATERIALIZED (
    SELECT c.* FROM generate_series(1, 10) AS p(p) CROSS JOIN LATERAL (
        SELECT id, queue, type, expires_at, fence FROM job_queue
         WHERE status = 'queued' AND priority > 0 AND priority = p.p AND scheduled_at <= @now@sparing
         ORDER BY scheduled_at, id LIMIT %(limit)s FOR UPDATE SKIP LOCKED
    ) AS c LIMIT %(limit)s),
mine AS MATERIALIZED (SELECT id, expires_at, fence FROM head WHERE {MAY_RUN.format(row="head")})
"""
# The same where dead rows lie at the head.
FIRST_FROM_FLOORS = FIRST.replace("generate_series(1, 10) AS p(p)", RANGES).replace(
    "priority = p.p AND", f"priority = r.key AND {IN_RANGE} AND"
)
# The same if jobs that this worker may not run are at the head. A skip-scan over job_queue_ready_type (queue, type,
# priority, scheduled_at, id) finds the groups present, and each wanted one is an arm of its own. job_queue_ready cannot
# serve these arms, because they don't say `priority > 0`. The arms read unlocked, since locks would be taken group by
# group and not in order. They read further than the limit, so that workers find something behind the locks of others.
GROUPS_PRESENT = """
groups AS (
    (SELECT queue, type, priority FROM job_queue WHERE status = 'queued' ORDER BY queue, type, priority LIMIT 1)
    UNION ALL
    SELECT n.* FROM groups AS g CROSS JOIN LATERAL (
        SELECT queue, type, priority FROM job_queue
         WHERE status = 'queued' AND (queue, type, priority) > (g.queue, g.type, g.priority)
         ORDER BY queue, type, priority LIMIT 1) AS n),
"""
# The groups that the last walk found, if a walk through all of them takes long.
_KNOWN_GROUPS = """
groups AS (SELECT * FROM json_to_recordset(%(groups)s::json) AS r(queue text, type text, priority smallint)),
"""
_WANTED = f"wanted AS MATERIALIZED (SELECT * FROM groups WHERE {MAY_RUN.format(row='groups')})"
_OF_WANTED = f"""{_WANTED},
head AS MATERIALIZED (
    SELECT c.* FROM wanted AS w CROSS JOIN LATERAL (
        SELECT id, priority, scheduled_at FROM job_queue
         WHERE status = 'queued' AND queue = w.queue AND type = w.type AND priority = w.priority
           AND scheduled_at <= @now@sparing
         ORDER BY scheduled_at, id LIMIT greatest(4 * %(limit)s, 64)) AS c),
mine AS MATERIALIZED (
    SELECT free.* FROM (SELECT id FROM head ORDER BY priority, scheduled_at, id) AS h CROSS JOIN LATERAL (
        SELECT id, expires_at, fence FROM job_queue AS j
         WHERE j.id = h.id AND j.status = 'queued' AND j.scheduled_at <= @now
         FOR UPDATE SKIP LOCKED
    ) AS free LIMIT %(limit)s)
"""
FIRST_OF_GROUPS = GROUPS_PRESENT + _OF_WANTED
FIRST_OF_KNOWN_GROUPS = _KNOWN_GROUPS + _OF_WANTED
# How many groups there are, how many of them are open, and the first of these: the due ones in the order of their first
# jobs, and those that will be by time.
WALK = f"""
WITH RECURSIVE {GROUPS_PRESENT}{_WANTED},
heads AS MATERIALIZED (
    SELECT w.*, head.scheduled_at, head.id, head.scheduled_at <= @now AS is_due FROM wanted AS w CROSS JOIN LATERAL (
        SELECT scheduled_at, id FROM job_queue
         WHERE status = 'queued' AND queue = w.queue AND type = w.type AND priority = w.priority
         ORDER BY scheduled_at, id LIMIT 1) AS head),
first AS (
    (SELECT * FROM heads WHERE is_due ORDER BY priority, scheduled_at, id LIMIT %(most)s)
    UNION ALL
    (SELECT * FROM heads WHERE NOT is_due ORDER BY scheduled_at, id LIMIT %(most)s))
SELECT (SELECT count(*) FROM groups), (SELECT count(*) FROM wanted), is_due, queue, type, priority
  FROM (SELECT 1) AS one LEFT JOIN first ON TRUE
"""
# A claim ends the jobs that came too late. Otherwise they would be in the way of the next one.
LAPSE = f"""
lapsed AS (
    UPDATE job_queue AS j SET {LAPSE_SET}, completed_at = @now, updated_at = @now
     WHERE j.id = ANY(ARRAY(SELECT id FROM mine WHERE NOT ({_IS_FRESH}))) RETURNING j.id)
"""
TAKE = f"""
taken AS (
    UPDATE job_queue AS j SET status = 'in_progress', lease_owner = %(owner)s, started_at = @now, updated_at = @now,
           lease_until = @now + coalesce((%(leases)s::json ->> j.type)::float8, %(lease)s) * interval '1 second',
           attempts = {COUNT_ATTEMPT}, fence = j.fence + 1, cancel_requested_at = NULL, end_reason = NULL
     WHERE j.id = ANY(ARRAY(SELECT id FROM mine WHERE {_IS_FRESH})) RETURNING {CLAIM_COLUMNS})
"""
COLUMNS = CLAIM_COLUMNS.split(", ")
SCHEDULED_AT = 1 + COLUMNS.index("scheduled_at")
COUNT = 1 + COLUMNS.index("fence")
GROUPS = 1 + COLUMNS.index("attempts")
CHOSEN = 1 + COLUMNS.index("crash_count")
SECONDS = 1 + COLUMNS.index("timeout")

#: Milliseconds that a worker's statement waits for what others have locked. Hardly any verb takes longer, and a turn
#: that waits stores and claims nothing; so after that it goes past the locks.
LOCK_TIMEOUT = 200

# How a worker sets its own session up. A cycle's plan is made once and kept: planning it again costs as much as fifty
# jobs do. Made on an empty table or on one that nobody has analysed, it must be the one for a full table, and so it is
# allowed nothing but ranges over indexes. What is ruled out only looks expensive where there is no other way; without
# jit = off that look alone would have each plan compiled.
SESSION = (
    f"SET lock_timeout = {LOCK_TIMEOUT}; "
    "SET plan_cache_mode = force_generic_plan; SET jit = off; SET enable_seqscan = off; SET enable_bitmapscan = off; "
    "SET enable_hashjoin = off; SET enable_mergejoin = off"
)

# What comes back: the claims, the settlements that were accepted, and how much was in the way.
_TEXTS = {"payload": "payload::text", "context": "context::text"}
_RETURN_TAKEN = f"SELECT 'taken', {', '.join(_TEXTS.get(name, name) for name in COLUMNS)} FROM taken"
_RETURN_SETTLED = _only("settled", id="id", fence="fence") + " FROM settled"
# Over job_queue_ready, one range per priority; not looked up where the claim is full.
_RETURN_NEXT_DUE = _only(
    "next due",
    timeout="""CASE WHEN (SELECT count(*) FROM taken) < %(limit)s THEN (
        SELECT extract(epoch FROM min(c.scheduled_at) - @now)::float8
          FROM generate_series(1, 10) AS p(p) CROSS JOIN LATERAL (
               SELECT scheduled_at FROM job_queue WHERE status = 'queued' AND priority > 0 AND priority = p.p
                  AND scheduled_at > @now ORDER BY scheduled_at LIMIT 1) AS c) END""",
)
_RETURN_LAPSED = _only("lapsed", id="id") + " FROM lapsed"
_RETURN_BLOCKED = _only(
    "blocked",
    scheduled_at="@now",
    fence="(SELECT count(*) FROM {all}) - (SELECT count(*) FROM {fit})",
    attempts="(SELECT count(*) FROM {all})",
    crash_count="(SELECT count(*) FROM mine)",
)

# The rows of a batch that more than one statement writes, locked in the order of ids like an operator's.
LOCK = "SELECT id FROM job_queue WHERE id = ANY(%(ids)s) ORDER BY id FOR UPDATE"
# The rows of a batch that no other session has locked, and those that exist.
LOCK_FREE = f"{LOCK} SKIP LOCKED"
THERE = "SELECT id FROM job_queue WHERE id = ANY(%(ids)s)"
# Over job_queue_leased (lease_until). A row that its own handler's transaction has locked is about to be settled.
RAN_OUT = f"""
SELECT {RAN_OUT_COLUMNS} FROM job_queue
 WHERE status = 'in_progress' AND lease_until < @now ORDER BY lease_until, id LIMIT %(limit)s FOR UPDATE SKIP LOCKED
"""
# What a worker holds: a walk over job_queue_leased, which has the running jobs alone.
HELD_ROWS = f"""
SELECT {RAN_OUT_COLUMNS} FROM job_queue
 WHERE status = 'in_progress' AND lease_until > '-infinity' AND coalesce(lease_owner, '') = %(owner)s
 LIMIT %(limit)s FOR UPDATE SKIP LOCKED
"""
# Over job_queue_expiring (expires_at).
EXPIRE = f"""
UPDATE job_queue SET {EXPIRE_SET}, completed_at = @now, updated_at = @now
 WHERE id = ANY(ARRAY(
    SELECT id FROM job_queue WHERE status = 'queued' AND expires_at IS NOT NULL AND expires_at <= @now
     ORDER BY expires_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED))
RETURNING id
"""
# What is held is read without locks; what is free to lock is extended, in the order of ids.
EXTEND = f"""
WITH v AS MATERIALIZED (SELECT * FROM json_to_recordset(%(claims)s::json) AS r(id text, fence bigint, owner text)),
held AS MATERIALIZED (SELECT j.id, j.fence, j.cancel_requested_at FROM v JOIN job_queue AS j ON {HELD}),
free AS MATERIALIZED (
    SELECT f.id FROM (SELECT id FROM held ORDER BY id) AS h CROSS JOIN LATERAL (
        SELECT id FROM job_queue AS j WHERE j.id = h.id FOR UPDATE SKIP LOCKED) AS f),
extended AS (
    UPDATE job_queue AS j SET lease_until = @now + %(lease)s * interval '1 second' FROM v
     WHERE {HELD} AND j.id = ANY(ARRAY(SELECT id FROM free)) RETURNING j.id)
SELECT held.id, held.fence, held.cancel_requested_at IS NOT NULL, extended.id IS NOT NULL
  FROM held LEFT JOIN extended USING (id)
"""


@cache
def cycle_statement(
    *,
    completing: bool,
    by_group: bool,
    known: bool,
    sparing: bool,
    prepared: bool,
    floors: bool = False,
    unlimited: bool = False,
    chosen: bool = False,
    placed: bool = False,
) -> str:
    """Return the statement of a cycle. One with ``chosen`` jobs under limits goes by group.

    If it is ``placed``, some of the chosen jobs take the places of others in the order of claims.
    """
    counted = {"all": "groups", "fit": "wanted"} if by_group else {"all": "head", "fit": "mine"}
    if by_group:
        first = FIRST_OF_KNOWN_GROUPS if known else FIRST_OF_GROUPS
    else:
        first = FIRST_FROM_FLOORS if floors else FIRST
    if chosen:
        first = first.replace("mine AS MATERIALIZED", "unlimited AS MATERIALIZED")
        first += WITH_PLACES if placed else WITH_CHOSEN
    first = first.replace("@sparing", SPARING if sparing else "").replace("@unlimited", UNLIMITED if unlimited else "")
    steps = [first, TAKE, LAPSE]
    answers = [_RETURN_TAKEN, _RETURN_BLOCKED.format(**counted), _RETURN_NEXT_DUE, _RETURN_LAPSED]
    if completing:
        # Answered first, and so done first: it waits for locked rows, and must hold none of the claim's while it does.
        complete = COMPLETE if prepared else COMPLETE.replace(_IDS, _LOCKED_IDS)
        steps.append(f"settled AS ({complete})")
        answers.insert(0, _RETURN_SETTLED)
    return f"WITH RECURSIVE {', '.join(steps)} {' UNION ALL '.join(answers)}"


#: The settings of a planner that prefers to read an index in its order. What it avoids counts as so expensive that it
#: would otherwise compile the rest.
_IN_ORDER = ("enable_bitmapscan", "enable_seqscan", "enable_sort", "jit")
#: Plan like that for this transaction. Return how much of the table's pages is not all-visible, where an entry of an
#: index costs a look at its row, and what was set before. The table may have grown since VACUUM.
READ_IN_ORDER = f"""
SELECT 1 - least(1, relallvisible::float8
                    / greatest(1, relpages, pg_relation_size(oid) / current_setting('block_size')::bigint)),
       {", ".join(f"current_setting('{name}')" for name in _IN_ORDER)},
       {", ".join(f"set_config('{name}', 'off', true)" for name in _IN_ORDER)}
  FROM pg_class WHERE oid = 'job_queue'::regclass
"""
READ_AS_BEFORE = "SELECT " + ", ".join(f"set_config('{name}', %s, true)" for name in _IN_ORDER)
