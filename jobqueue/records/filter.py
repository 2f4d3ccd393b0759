"""Filters, which select jobs by what their columns contain."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from datetime import datetime
from typing import NamedTuple

from jobqueue.errors import InvalidOption
from jobqueue.states import JobStatus

#: The longest text to search for, because each letter of each text is compared with it.
LONGEST_SOUGHT = 200
#: The largest number in a range, as in the columns.
LARGEST_SOUGHT = 1_000_000_000


class Range(NamedTuple):
    """The whole numbers from ``least`` to ``most``, both included."""

    least: int = 0
    most: int = LARGEST_SOUGHT

    def has(self, number: int) -> bool:
        """Return whether a number is in the range."""
        return self.least <= number <= self.most


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """A selection of jobs. Empty fields match every job.

    ``created_after`` and ``created_before`` are compared with the job's creation, ``ended_after`` and ``ended_before``
    with its end. ``error`` selects a part of the last error's text or of its class, and ``error_class`` a part of its
    class alone; both ignore case. ``payload`` holds pairs of a dotted path into the payload and a value; see
    ``stands_for``. Digits in a path are an index of an array, or a key. ``fingerprint`` selects a kind of failure; the
    empty one selects failures without a fingerprint.

    A job that matches one of the filters in ``excluded`` isn't selected. They can't search errors and payloads: what
    they leave out would reveal what redaction hides. Raises InvalidOption for such a filter, and for an ``error`` or
    ``error_class`` longer than ``LONGEST_SOUGHT``.
    """

    ids: frozenset[str] = frozenset()
    statuses: frozenset[JobStatus] = frozenset()
    types: frozenset[str] = frozenset()
    queues: frozenset[str] = frozenset()
    tenant: str | None = None
    error: str = ""
    error_class: str = ""
    end_reasons: frozenset[str] = frozenset()
    created_after: datetime | None = None
    created_before: datetime | None = None
    ended_after: datetime | None = None
    ended_before: datetime | None = None
    priority: Range | None = None
    attempts: Range | None = None
    id_prefix: str = ""
    idempotency_key: str | None = None
    parent_id: str | None = None
    lease_owner: str | None = None
    fingerprint: str | None = None
    payload: tuple[tuple[str, object], ...] = ()
    excluded: tuple[Filter, ...] = ()

    def __post_init__(self) -> None:
        for name in ("error", "error_class"):
            if (length := len(getattr(self, name))) > LONGEST_SOUGHT:
                raise InvalidOption(name, f"must be at most {LONGEST_SOUGHT} characters, got {length}")
        for one in self.excluded:
            if one == Filter() or one.error or one.payload or one.excluded:
                raise InvalidOption("excluded", "must not be empty, nor search errors, payloads or exclusions")

    def has_only(self, *names: str) -> bool:
        """Return whether all other fields are empty."""
        return all(one.name in names or getattr(self, one.name) == one.default for one in fields(self))


def stands_for(value: object) -> tuple[object, ...]:
    """Return the values that a value in ``Filter.payload`` matches: itself, and the text that is written like it."""
    return (value,) if isinstance(value, str) else (value, json.dumps(value))


def is_place(element: str) -> bool:
    """Return whether an element of such a path may be an array index, which has nine digits at most."""
    return element.isascii() and element.isdecimal() and len(element) <= 9
