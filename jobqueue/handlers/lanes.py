"""The lanes of jobs in ordered queues, which the producer names."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

from jobqueue import queues
from jobqueue.handlers.limits import key_of, with_keys
from jobqueue.policy.lanes import WHOLE_QUEUE
from jobqueue.records import Draft

if TYPE_CHECKING:
    from jobqueue.handlers.registry import JobType

#: The types and queues for which a warning was given, which is given once for each.
_warned: set[tuple[str, str]] = set()


def with_all_keys(kind: JobType, draft: Draft) -> Draft:
    """Return a draft with the keys of its limits, and of its fair queue or lane."""
    keyed = with_keys(kind, draft)
    return with_lane(kind, keyed, draft.parallel) if queues.options_of(draft.queue).ordered else keyed


def with_lane(kind: JobType, draft: Draft, parallel: bool | None) -> Draft:
    """Return a draft with its lane, if its queue is ordered. Otherwise ``parallel`` has no effect."""
    ordered = queues.options_of(draft.queue).ordered
    if not ordered:
        _warn(kind.name, draft.queue)
        return draft
    lane = WHOLE_QUEUE
    if isinstance(ordered, str):
        lane = key_of(ordered, _value_of(ordered, draft), "a lane") or WHOLE_QUEUE
    return replace(draft, lane=lane, parallel=bool(parallel))


def _value_of(ordered: str, draft: Draft) -> object:
    """Return the value that names the lane, read as ``lane_of`` does, so that a claim would name the same lane.

    So a field has the name that it has in stored payloads.
    """
    if ordered == "tenant":
        return draft.tenant
    fields = json.loads(draft.payload)
    return fields.get(ordered) if isinstance(fields, dict) else None


def _warn(job_type: str, queue: str) -> None:
    if (job_type, queue) not in _warned:
        _warned.add((job_type, queue))
        warnings.warn(
            f"A {job_type} job has the option parallel, but its queue {queue!r} is not ordered, so the option has no "
            f"effect. To order the queue, set JOBQUEUE['QUEUES'][{queue!r}] = {{'ordered': True}}.",
            stacklevel=2,
        )
