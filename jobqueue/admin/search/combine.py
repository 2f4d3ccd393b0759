"""The combination of two filters, such as the search box and the sidebar."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.utils.translation import gettext

from jobqueue.admin.search.tokens import written
from jobqueue.records import Filter

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
}
_SETS = ("ids", "statuses", "types", "queues")
_ONES = ("tenant", "idempotency_key", "parent_id", "lease_owner", "fingerprint")


class BadQuery(ValueError):
    """A query is invalid, or no job can match it. The message is for the user."""


def both(one: Filter, other: Filter) -> Filter:
    """Combine two filters. Raises BadQuery if no job can match both."""
    changes: dict[str, Any] = {name: _shared(name, getattr(one, name), getattr(other, name)) for name in _SETS}
    changes |= {name: _same(name, getattr(one, name), getattr(other, name)) for name in _ONES}
    changes["id_prefix"] = _longer(one.id_prefix, other.id_prefix)
    changes["error"] = _containing(one.error, other.error)
    changes["created_after"] = max(filter(None, (one.created_after, other.created_after)), default=None)
    changes["created_before"] = min(filter(None, (one.created_before, other.created_before)), default=None)
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


def _containing(one: str, other: str) -> str:
    short, long = sorted((one, other), key=len)
    if short.lower() not in long.lower():
        raise BadQuery(gettext("Only one “error:” is possible; put words that belong together in quotes."))
    return long


def _contradiction(one: str, other: str) -> BadQuery:
    return BadQuery(gettext("No job is both “%(one)s” and “%(other)s”.") % {"one": one, "other": other})


def _listed(values: frozenset[str]) -> str:
    return ",".join(written(value) for value in sorted(values))
