"""The parameters of Postgres' statements: mostly JSON, so that one statement fits any number of rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from jobqueue.backends.postgresql.insert_statements import DRAFTED
from jobqueue.clock import to_text
from jobqueue.durations import in_seconds
from jobqueue.records import ClaimRequest, Draft, Settlement

_SAID: dict[str, Callable[[Draft], Any]] = {name: attrgetter(name) for name in DRAFTED} | {
    "timeout": lambda draft: in_seconds(draft.timeout),
    "expires_at": lambda draft: draft.expires_at and to_text(draft.expires_at),
    "scheduled_at": lambda draft: draft.scheduled_at and to_text(draft.scheduled_at),
    "delay": lambda draft: draft.wait.total_seconds() or None,
}


def columns_of(draft: Draft) -> dict[str, Any]:
    """Return the columns of one draft."""
    return {name: read(draft) for name, read in _SAID.items()}


def common_and_each(drafts: Sequence[Draft]) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """Split the columns of drafts into those with the same value in all drafts, and the others."""
    common, each = {}, {}
    for name, read in _SAID.items():
        values = [read(draft) for draft in drafts]
        if values.count(values[0]) < len(values):
            each[name] = values
        elif values[0] is not None:
            common[name] = values[0]
    return common, each


def completions(settlements: Sequence[Settlement]) -> str:
    """Return completions as JSON, by id and fence. Of two for the same claim, the first counts."""
    return json.dumps(
        {
            f"{one.id} {one.fence}": {"id": one.id, "fence": one.fence, "owner": one.owner, "result": one.result}
            for one in reversed(settlements)
        }
    )


def of_request(request: ClaimRequest) -> dict[str, Any]:
    """Return the parameters of a claim."""
    return {
        "limit": request.limit,
        "types": sorted(request.types),
        "queues": None if request.queues is None else sorted(request.queues),
        "lease": request.lease.total_seconds(),
        "leases": json.dumps({name: lease.total_seconds() for name, lease in request.leases.items()}),
    }


def like(patterns: Sequence[str]) -> list[str]:
    """Return patterns of queues, in which ``*`` stands for any text, as patterns of LIKE."""
    escaped = (one.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") for one in patterns)
    return [one.replace("*", "%") for one in escaped]


def named_lanes(drafts: Sequence[Draft]) -> str:
    """Return the lanes of drafts as JSON."""
    lanes = {(one.queue, one.lane) for one in drafts if one.lane is not None}
    return json.dumps([{"queue": queue, "lane": lane} for queue, lane in lanes])
