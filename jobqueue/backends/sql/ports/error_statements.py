"""The statements that group dead letters by error, each count up to a limit; the same for both databases.

Everything here is a range of job_queue_dead_error (error_fingerprint, completed_at, id), the partial index of dead
letters, and of nothing else: what other jobs there are costs nothing. Nothing is locked.
"""

from __future__ import annotations

#: So many fingerprints are looked at.
LOOKED_AT = 1_000

#: How the fingerprints that are asked for are compared; a NULL equals nothing.
EQUAL, NONE = "= asked.fingerprint", "IS NULL"

_DEAD = "FROM job_queue WHERE status = 'dead_letter' AND error_fingerprint"
# In the whole order of the index, so that no planner gathers a range before it takes the first of it. The first column
# is named although it is the same for all: Postgres does not see that of one that IS NULL, and would sort.
_OLDEST_FIRST = "ORDER BY error_fingerprint, completed_at, id"
_NEWEST_FIRST = "ORDER BY error_fingerprint DESC, completed_at DESC, id DESC"


def _newest(column: str, kind: str) -> str:
    # What another program gave no end is the newest only where all are such.
    return f"(SELECT {column} {_DEAD} {kind} AND completed_at IS NOT NULL {_NEWEST_FIRST} LIMIT 1)"


# One probe leads from a fingerprint to the next above it, however many jobs each has; a second finds its latest. No
# LIMIT but a number bounds the walk, for Postgres allows none there.
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
    """Count each group up to a limit, and find its first, its last and its newest job."""
    return f"""
SELECT asked.fingerprint,
       (SELECT count(*) FROM (SELECT 1 {_DEAD} {kind} {_OLDEST_FIRST} LIMIT %s) AS counted),
       (SELECT completed_at {_DEAD} {kind} AND completed_at IS NOT NULL {_OLDEST_FIRST} LIMIT 1),
       {_newest("completed_at", kind)},
       coalesce({_newest("id", kind)}, (SELECT id {_DEAD} {kind} {_NEWEST_FIRST} LIMIT 1))
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
