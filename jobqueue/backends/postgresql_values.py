"""What Postgres' statements are given, spelled out: mostly JSON, so that one plan serves any number of rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import timedelta
from operator import attrgetter
from typing import Any

from jobqueue.backends import postgresql_statements as statements
from jobqueue.clock import to_text
from jobqueue.records import ClaimRequest, Draft, Settlement

_SAID: dict[str, Callable[[Draft], Any]] = {name: attrgetter(name) for name in statements.DRAFTED} | {
    "timeout": lambda draft: in_seconds(draft.timeout),
    "expires_at": lambda draft: draft.expires_at and to_text(draft.expires_at),
    "scheduled_at": lambda draft: draft.scheduled_at and to_text(draft.scheduled_at),
    "delay": lambda draft: draft.delay.total_seconds() or None,
}


def common_and_each(drafts: Sequence[Draft]) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """Read what drafts say: what is the same in all of them, and column by column what is not."""
    common, each = {}, {}
    for name, read in _SAID.items():
        values = [read(draft) for draft in drafts]
        if values.count(values[0]) < len(values):
            each[name] = values
        elif values[0] is not None:
            common[name] = values[0]
    return common, each


def completions(settlements: Sequence[Settlement]) -> str:
    """Spell completions out by id and fence; of two offers for a claim the first."""
    return json.dumps(
        {
            f"{one.id} {one.fence}": {"id": one.id, "fence": one.fence, "owner": one.owner, "result": one.result}
            for one in reversed(settlements)
        }
    )


def of_request(request: ClaimRequest) -> dict[str, Any]:
    """Spell out what a claim asks for."""
    return {
        "limit": request.limit,
        "types": sorted(request.types),
        "queues": None if request.queues is None else sorted(request.queues),
        "lease": request.lease.total_seconds(),
        "leases": json.dumps({name: lease.total_seconds() for name, lease in request.leases.items()}),
    }


def in_seconds(length: timedelta | None) -> float | None:
    """Spell a length of time out."""
    return None if length is None else length.total_seconds()


def length(seconds: float | None) -> timedelta | None:
    """Read a length of time."""
    return None if seconds is None else timedelta(seconds=seconds)
