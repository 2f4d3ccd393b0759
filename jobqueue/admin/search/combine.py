"""The combination of two filters, such as the search box and the sidebar."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.utils.translation import gettext

from jobqueue.admin.search.tokens import written, written_range
from jobqueue.records import Filter, Range

#: The name of each field in the search box.
NAMES = {
    "ids": "id",
    "statuses": "status",
    "types": "type",
    "queues": "queue",
    "tenant": "tenant",
    "idempotency_key": "key",
    "parent_id": "parent",
    "lease_owner": "worker",
    "fingerprint": "fingerprint",
    "end_reasons": "reason",
    "priority": "priority",
    "attempts": "attempts",
}
_SETS = ("ids", "statuses", "types", "queues", "end_reasons")
#: The texts that a job must contain.
_TEXTS = {"error": "error", "error_class": "class"}
_ONES = ("tenant", "idempotency_key", "parent_id", "lease_owner", "fingerprint")


class BadQuery(ValueError):
    """A query is invalid, or no job can match it. The message is for the user."""


def both(one: Filter, other: Filter) -> Filter:
    """Combine two filters. Raises BadQuery if no job can match both."""
    changes: dict[str, Any] = {name: _shared(name, getattr(one, name), getattr(other, name)) for name in _SETS}
    changes |= {name: _same(name, getattr(one, name), getattr(other, name)) for name in _ONES}
    changes["id_prefix"] = _longer(one.id_prefix, other.id_prefix)
    changes |= {field: _containing(name, getattr(one, field), getattr(other, field)) for field, name in _TEXTS.items()}
    for field in ("created", "ended"):
        given = (getattr(one, f"{field}_after"), getattr(other, f"{field}_after"))
        changes[f"{field}_after"] = max(filter(None, given), default=None)
        given = (getattr(one, f"{field}_before"), getattr(other, f"{field}_before"))
        changes[f"{field}_before"] = min(filter(None, given), default=None)
    changes |= {name: _within(name, getattr(one, name), getattr(other, name)) for name in ("priority", "attempts")}
    changes["excluded"] = tuple(dict.fromkeys((*one.excluded, *other.excluded)))
    # Compared as text, because True == 1.
    changes["payload"] = tuple({repr(pair): pair for pair in (*one.payload, *other.payload)}.values())
    return replace(one, **changes)


def _shared(name: str, one: frozenset[str], other: frozenset[str]) -> frozenset[str]:
    if one and other and not one & other:
        raise _contradiction(f"{NAMES[name]}:{_listed(one)}", f"{NAMES[name]}:{_listed(other)}")
    return one & other if one and other else one or other


def _same(name: str, one: str | None, other: str | None) -> str | None:
    if one is not None and other is not None and one != other:
        raise _contradiction(f"{NAMES[name]}:{written(one)}", f"{NAMES[name]}:{written(other)}")
    return other if one is None else one


def _longer(one: str, other: str) -> str:
    short, long = sorted((one, other), key=len)
    if not long.startswith(short):
        raise _contradiction(f"id:{one}*", f"id:{other}*")
    return long


def _containing(name: str, one: str, other: str) -> str:
    short, long = sorted((one, other), key=len)
    if short.lower() not in long.lower():
        said = gettext("Only one “%(name)s:” is possible; put words that belong together in quotes.")
        raise BadQuery(said % {"name": name})
    return long


def _within(name: str, one: Range | None, other: Range | None) -> Range | None:
    if one is None or other is None:
        return other if one is None else one
    least, most = max(one.least, other.least), min(one.most, other.most)
    if least > most:
        raise _contradiction(f"{name}:{written_range(one)}", f"{name}:{written_range(other)}")
    return Range(least, most)


def _contradiction(one: str, other: str) -> BadQuery:
    return BadQuery(gettext("No job is both “%(one)s” and “%(other)s”.") % {"one": one, "other": other})


def _listed(values: frozenset[str]) -> str:
    return ",".join(written(value) for value in sorted(values))
