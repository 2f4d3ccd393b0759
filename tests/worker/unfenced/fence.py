"""The fence, and how to take it out of every write of a claim's holder."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from jobqueue.backends import postgresql_statements, sql, sqlite_statements, watching
from jobqueue.models import Job

SET = Callable[[object, str, Any], None]


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
        fences = {sql.HELD.removeprefix("j.id = v.id"): "", module.HELD_BY_KEY: " "}
        module.cycle_statement.cache_clear()
    for name in ("COMPLETE", "SETTLE", "EXTEND"):
        ((fence, instead),) = (one for one in fences.items() if one[0] in getattr(module, name))
        statement = getattr(module, name).replace(fence, instead)
        offered = "v.id, v.fence" if "v.id" in statement else "j.id, (v.done -> j.id -> 'fence')::bigint"
        put(module, name, statement.replace("RETURNING j.id, j.fence", f"RETURNING {offered}"))
    put(watching.Watching, "progress", _unfenced_progress)


def _unfenced_progress(backend: Any, reports: Any) -> None:
    for one in reports:
        Job.objects.using(backend.alias).filter(pk=one.id).update(progress=json.loads(one.report))
