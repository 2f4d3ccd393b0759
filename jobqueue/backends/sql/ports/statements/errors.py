"""The statements for both databases that group dead letters by error, and count each group up to a limit.

Each reads only ranges of job_queue_dead_error (error_fingerprint, completed_at, id), the index of dead letters.
The number of other jobs therefore doesn't matter. No rows are locked.
"""

from __future__ import annotations

from jobqueue.records import GroupOrder

#: The most fingerprints that are read.
LOOKED_AT = 1_000

#: The comparisons with requested fingerprints: by value, and for dead letters without a fingerprint.
EQUAL, NONE = "= asked.fingerprint", "IS NULL"

_DEAD = "FROM job_queue WHERE status = 'dead_letter' AND error_fingerprint"
# The whole order of the index, so that the planner doesn't read a whole range before it takes the first rows. The order
# includes error_fingerprint although it has one value: with IS NULL, Postgres doesn't notice that, and would sort.
_OLDEST_FIRST = "ORDER BY error_fingerprint, completed_at, id"
_NEWEST_FIRST = "ORDER BY error_fingerprint DESC, completed_at DESC, id DESC"

_ORDERS = {
    GroupOrder.LATEST: "last_at DESC NULLS LAST",
    GroupOrder.NEWEST: "first_at DESC NULLS LAST",
    GroupOrder.LARGEST: "jobs DESC, last_at DESC NULLS LAST",
}


def _newest(column: str, kind: str) -> str:
    # A job without completed_at, written by another program, is the newest only if no job of the group has one.
    return f"(SELECT {column} {_DEAD} {kind} AND completed_at IS NOT NULL {_NEWEST_FIRST} LIMIT 1)"


def everything(order: GroupOrder) -> str:
    """Sum up all groups by one walk through the index, which a limit bounds. Each row also has the sum of all.

    If that is the limit, the walk didn't reach the end.
    """
    return f"""
SELECT error_fingerprint, count(*) AS jobs, min(completed_at) AS first_at, max(completed_at) AS last_at,
       sum(count(*)) OVER ()
  FROM (SELECT error_fingerprint, completed_at FROM job_queue WHERE status = 'dead_letter'
         ORDER BY error_fingerprint, completed_at, id LIMIT %s) AS walked
 GROUP BY error_fingerprint ORDER BY {_ORDERS[order]}, error_fingerprint LIMIT {LOOKED_AT + 1}
"""


def newest(kind: str) -> str:
    """Find the newest job of each group."""
    return f"""
SELECT asked.fingerprint, coalesce({_newest("id", kind)}, (SELECT id {_DEAD} {kind} {_NEWEST_FIRST} LIMIT 1))
  FROM asked
"""


# Each step finds the next fingerprint with one probe of the index, and its latest dead letter with another. A column
# counts the steps, because Postgres allows no LIMIT in the recursive part.
KINDS = f"""
WITH RECURSIVE asked(place, fingerprint) AS (
    SELECT 1, (SELECT error_fingerprint {_DEAD} > '' ORDER BY error_fingerprint LIMIT 1)
    UNION ALL
    SELECT place + 1, (SELECT error_fingerprint {_DEAD} > asked.fingerprint ORDER BY error_fingerprint LIMIT 1)
      FROM asked WHERE fingerprint IS NOT NULL AND place < {LOOKED_AT + 1}
)
SELECT fingerprint, {_newest("completed_at", EQUAL)} FROM asked WHERE fingerprint IS NOT NULL
 UNION ALL
SELECT NULL, {_newest("completed_at", NONE)} WHERE EXISTS (SELECT 1 {_DEAD} {NONE})
"""


def sums(kind: str) -> str:
    """Count each group up to a limit, and find its first and its last end."""
    return f"""
SELECT asked.fingerprint,
       (SELECT count(*) FROM (SELECT 1 {_DEAD} {kind} {_OLDEST_FIRST} LIMIT %s) AS counted),
       (SELECT completed_at {_DEAD} {kind} AND completed_at IS NOT NULL {_OLDEST_FIRST} LIMIT 1),
       {_newest("completed_at", kind)}
  FROM asked
"""


def hourly(kind: str, hours: int, moment: str) -> str:
    """Return SQL that counts each group in each of ``hours`` hours. ``moment`` is the SQL type of a time."""
    rows = ", ".join(f"({hour}, CAST(%s AS {moment}), CAST(%s AS {moment}))" for hour in range(hours))
    return f""", hours(place, begins_at, ends_at) AS (VALUES {rows})
SELECT asked.fingerprint, hours.place,
       (SELECT count(*) FROM (SELECT 1 {_DEAD} {kind} AND completed_at >= hours.begins_at
                                 AND completed_at < hours.ends_at {_OLDEST_FIRST} LIMIT %s) AS counted)
  FROM asked CROSS JOIN hours
"""
