"""Filters on rows in memory: they match the same jobs as on a database."""

from __future__ import annotations

from collections.abc import Iterator

from jobqueue.records import Filter, JobRecord, is_place, stands_for


def lets_through(wanted: Filter, row: JobRecord) -> bool:
    """Return whether a row matches a filter."""
    return (
        (not wanted.ids or row.id in wanted.ids)
        and (not wanted.statuses or row.status in wanted.statuses)
        and (not wanted.types or row.type in wanted.types)
        and (not wanted.queues or row.queue in wanted.queues)
        and (wanted.tenant is None or row.tenant == wanted.tenant)
        and wanted.error.lower() in (row.error or "").lower()
        and (wanted.created_after is None or row.created_at >= wanted.created_after)
        and (wanted.created_before is None or row.created_at < wanted.created_before)
        and row.id.startswith(wanted.id_prefix)
        and (wanted.idempotency_key is None or row.idempotency_key == wanted.idempotency_key)
        and (wanted.parent_id is None or row.parent_id == wanted.parent_id)
        and (wanted.lease_owner is None or row.lease_owner == wanted.lease_owner)
        and (wanted.fingerprint is None or (row.error_fingerprint or "") == wanted.fingerprint)
        and all(_holds(row.payload, path, value) for path, value in wanted.payload)
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
