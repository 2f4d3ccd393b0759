"""The writing of filters as queries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from jobqueue.admin.search import job_id
from jobqueue.admin.search.combine import NAMES
from jobqueue.admin.search.qualifiers import AS_STATUS, NO_FINGERPRINT
from jobqueue.admin.search.tokens import TO, quoted, written, written_range, written_scalar
from jobqueue.clock import to_text
from jobqueue.records import Filter
from jobqueue.states import JobStatus

_FAILED, _DEAD = frozenset({JobStatus.FAILED}), frozenset({JobStatus.DEAD_LETTER})


def spelled(wanted: Filter) -> str:
    """Write a filter as a query; ``parse`` reads the same filter. What it excludes must be one word each."""
    return " ".join(_spelled(wanted))


def _spelled(wanted: Filter) -> Iterator[str]:
    if wanted.statuses == _FAILED and len(wanted.end_reasons) == 1 and wanted.end_reasons <= AS_STATUS.keys():
        yield f"status:{min(wanted.end_reasons)}"
        wanted = replace(wanted, statuses=frozenset(), end_reasons=frozenset())
    ended = _range(wanted.ended_after, wanted.ended_before)
    if wanted.statuses == _DEAD and ended:
        yield f"died:{ended}"
        wanted, ended = replace(wanted, statuses=frozenset()), ""
    for field in ("types", "statuses", "queues", "end_reasons"):
        if values := getattr(wanted, field):
            yield f"{NAMES[field]}:{','.join(map(_written_item, sorted(values)))}"
    yield from _spelled_ids(wanted)
    if wanted.error:
        yield f"error:{written(wanted.error)}"
    if wanted.error_class:
        yield f"class:{written(wanted.error_class)}"
    for path, value in wanted.payload:
        yield f"payload.{quoted(path) if ':' in path else written(path)}:{written_scalar(value)}"
    for field in ("tenant", "idempotency_key", "parent_id", "lease_owner"):
        if (value := getattr(wanted, field)) is not None:
            is_other = field == "parent_id" and job_id.as_ulid(value) != value
            yield f"{NAMES[field]}:{quoted(value) if is_other else written(value)}"
    if wanted.fingerprint is not None:
        name = quoted(NO_FINGERPRINT) if wanted.fingerprint == NO_FINGERPRINT else written(wanted.fingerprint)
        yield f"fingerprint:{name if wanted.fingerprint else NO_FINGERPRINT}"
    for name in ("priority", "attempts"):
        if (numbers := getattr(wanted, name)) is not None:
            yield f"{name}:{written_range(numbers)}"
    for name, moment in (("after", wanted.created_after), ("before", wanted.created_before)):
        if moment is not None:
            yield f"{name}:{to_text(moment)}"
    if ended:
        yield f"ended:{ended}"
    yield from (f"-{spelled(one)}" for one in wanted.excluded)


def _spelled_ids(wanted: Filter) -> Iterator[str]:
    if wanted.ids:
        yield f"id:{','.join(_written_item(one, job_id.as_ulid(one)) for one in sorted(wanted.ids))}"
    if wanted.id_prefix:
        yield f"id:{_written_item(wanted.id_prefix, job_id.as_beginning(wanted.id_prefix))}*"


def _range(first: datetime | None, last: datetime | None) -> str:
    """Write a range of moments, of which one may be missing. A first one alone needs no dots."""
    start = to_text(first) if first else ""
    return f"{start}{TO}{to_text(last)}" if last else start


def _written_item(value: str, read_as: str | None = None) -> str:
    """Write one of several values: in quotes if it would be read as another one without them."""
    return quoted(value) if value.endswith("*") or read_as not in (None, value) else written(value)
