"""Filters on rows in memory, with the same matches as in a database."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from jobqueue.records import Filter, JobRecord, is_place, stands_for


def lets_through(wanted: Filter, row: JobRecord) -> bool:
    """Return whether a row matches a filter."""
    return all(_demands(wanted, row)) and not any(all(_demands(one, row)) for one in wanted.excluded)


def _demands(wanted: Filter, row: JobRecord) -> Iterator[bool]:
    """Yield whether a row meets each demand of a filter, except for what it excludes."""
    yield not wanted.ids or row.id in wanted.ids
    yield not wanted.statuses or row.status in wanted.statuses
    yield not wanted.types or row.type in wanted.types
    yield not wanted.queues or row.queue in wanted.queues
    yield not wanted.end_reasons or row.end_reason in wanted.end_reasons
    for column in ("tenant", "idempotency_key", "parent_id", "lease_owner"):
        yield (value := getattr(wanted, column)) is None or getattr(row, column) == value
    yield _is_between(wanted.created_after, row.created_at, wanted.created_before)
    yield _is_between(wanted.ended_after, row.completed_at, wanted.ended_before)
    yield wanted.priority is None or wanted.priority.has(row.priority)
    yield wanted.attempts is None or wanted.attempts.has(row.attempts)
    yield wanted.fingerprint is None or (row.error_fingerprint or "") == wanted.fingerprint
    yield wanted.error.lower() in (row.error or "").lower() or _is_of_class(row, wanted.error)
    yield not wanted.error_class or _is_of_class(row, wanted.error_class)
    yield all(_holds(row.payload, path, value) for path, value in wanted.payload)
    yield row.id.startswith(wanted.id_prefix)


def _is_between(after: datetime | None, moment: datetime | None, before: datetime | None) -> bool:
    if after is None and before is None:
        return True
    return moment is not None and (after is None or moment >= after) and (before is None or moment < before)


def _is_of_class(row: JobRecord, text: str) -> bool:
    """Return whether the class of the last attempt's error contains a text."""
    return row.error is not None and any(
        one.fence == row.fence and text.lower() in one.error_class.lower() for one in row.history
    )


def _holds(payload: object, path: str, value: object) -> bool:
    return any(_same(found, one) for found in _at(payload, path) for one in stands_for(value))


def _at(payload: object, path: str) -> Iterator[object]:
    """Yield the value at a dotted path, if there is one."""
    for element in path.split("."):
        if isinstance(payload, dict) and element in payload:
            payload = payload[element]
        elif isinstance(payload, list) and is_place(element) and int(element) < len(payload):
            payload = payload[int(element)]
        else:
            return
    yield payload


def _same(one: object, other: object) -> bool:
    return one == other and isinstance(one, bool) == isinstance(other, bool)
