"""The JSON form of a filter, for payloads and forms. Filters survive the round trip unchanged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from datetime import datetime
from typing import Any

from jobqueue.errors import InvalidOption
from jobqueue.records.filter import LARGEST_SOUGHT, Filter, Range
from jobqueue.states import JobStatus

_EMPTY = {one.name: one.default for one in fields(Filter)}


def filter_to_json(wanted: Filter) -> dict[str, Any]:
    """Return a filter as JSON data, without its empty fields."""
    given = {name: getattr(wanted, name) for name in _EMPTY}
    return {name: _written(value) for name, value in given.items() if value != _EMPTY[name]}


def filter_from_json(data: object) -> Filter:
    """Parse the JSON data of a filter.

    Raises InvalidOption for anything unknown, because a filter without it would match more jobs.
    """
    if not isinstance(data, dict):
        raise InvalidOption("filter", f"must be a JSON object, got {type(data).__name__}")
    unknown = sorted(str(name) for name in data.keys() - _READ.keys())
    if unknown:
        raise InvalidOption("filter", f"has the unknown field {unknown[0]!r:.60}")
    read: dict[str, Any] = {}
    for name, value in data.items():
        try:
            read[name] = _READ[name](value)
        except (TypeError, ValueError) as error:
            raise InvalidOption("filter", f"has an invalid {name!r}") from error
    return Filter(**read)


def _written(value: Any) -> Any:
    if isinstance(value, frozenset):
        return sorted(str(one) for one in value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Filter):
        return filter_to_json(value)
    return [_written(one) for one in value] if isinstance(value, tuple) else value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _texts(value: object) -> frozenset[str]:
    if not isinstance(value, list) or not value:  # an empty list would match everything
        raise TypeError
    return frozenset(map(_text, value))


def _statuses(value: object) -> frozenset[JobStatus]:
    return frozenset(map(JobStatus, _texts(value)))


def _moment(value: object) -> datetime:
    return datetime.fromisoformat(_text(value))


def _payload(value: object) -> tuple[tuple[str, object], ...]:
    if not isinstance(value, list) or not value or not all(isinstance(pair, list) for pair in value):
        raise TypeError
    return tuple((_text(path), found) for path, found in value)


def _range(value: object) -> Range:
    if not isinstance(value, list) or any(type(one) is not int or abs(one) > LARGEST_SOUGHT for one in value):
        raise TypeError
    return Range(*value)


def _excluded(value: object) -> tuple[Filter, ...]:
    if not isinstance(value, list) or not all(value):  # an empty filter would exclude every job
        raise TypeError
    return tuple(map(filter_from_json, value))


_READ: dict[str, Callable[[object], Any]] = {
    "ids": _texts,
    "statuses": _statuses,
    "types": _texts,
    "queues": _texts,
    "tenant": _text,
    "error": _text,
    "error_class": _text,
    "end_reasons": _texts,
    "created_after": _moment,
    "created_before": _moment,
    "ended_after": _moment,
    "ended_before": _moment,
    "priority": _range,
    "attempts": _range,
    "id_prefix": _text,
    "idempotency_key": _text,
    "parent_id": _text,
    "lease_owner": _text,
    "fingerprint": _text,
    "payload": _payload,
    "excluded": _excluded,
}
