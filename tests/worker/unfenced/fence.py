"""The removal of the fence from every write of a claim's holder."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from jobqueue.backends.postgresql import statements as postgresql_statements
from jobqueue.backends.sql import statements as sql_statements
from jobqueue.backends.sql.claims.held_claims import HeldClaims
from jobqueue.backends.sql.settlements import Settlements
from jobqueue.backends.sqlite import statements as sqlite_statements
from jobqueue.models import Job

SET = Callable[[object, str, Any], None]


COMPLETE_BY_ID = """
UPDATE job_queue AS j SET status = 'completed', result = v.result::jsonb, completed_at = @now, updated_at = @now,
       lease_owner = NULL, lease_until = NULL
  FROM (SELECT value ->> 'id' AS id, (value ->> 'fence')::bigint AS fence, value ->> 'result' AS result
          FROM jsonb_each(%(completions)s::jsonb)) AS v
 WHERE j.id = v.id RETURNING v.id, v.fence
"""


def take_out(vendor: str, put: SET = setattr) -> None:
    """Let a holder's writes find their job by its id alone; ``put`` replaces attributes."""
    if vendor == "sqlite":
        module: Any = sqlite_statements
        fences = {
            module.HELD.removeprefix("j.id = :id"): "",
            module.HELD_BY_PLACE.removeprefix("j.id = ?"): " AND ? IS NOT NULL AND ? IS NOT NULL",
        }
    else:
        module = postgresql_statements
        fences = {sql_statements.HELD.removeprefix("j.id = v.id"): ""}
        module.cycle_statement.cache_clear()
        put(module, "COMPLETE", COMPLETE_BY_ID)
    for name in ("COMPLETE", "SETTLE", "EXTEND"):
        statement = getattr(module, name)
        for fence, instead in fences.items():
            statement = statement.replace(fence, instead)
        assert "owner" not in statement.partition("WHERE")[2]
        put(module, name, statement.replace("RETURNING j.id, j.fence", "RETURNING v.id, v.fence"))
    put(HeldClaims, "progress", _unfenced_progress)
    put(Settlements, "_store_progress", _unfenced_report)


def _unfenced_progress(claims: Any, reports: Any) -> None:
    for one in reports:
        claims._session.rows(Job).filter(pk=one.id).update(progress=json.loads(one.report))


def _unfenced_report(settlements: Any, job_id: str, _fence: int, text: str) -> None:
    settlements._session.rows(Job).filter(pk=job_id).update(progress=json.loads(text))
