"""The durations in rows of metrics."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.db.models import QuerySet

from jobqueue.models import Metric
from jobqueue.policy.histogram import read
from jobqueue.records import Lengths

#: A duration in seconds that no job can have waited.
_BEYOND_ALL = 1e12


def lengths_in(row: Mapping[str, Any], name: str) -> Lengths:
    """Return what a row has under ``waited`` or ``ran``."""
    return Lengths(read(row[name]), amount(row[f"{name}_sum"]))


def amount(seconds: float) -> float:
    """Return a duration in seconds, or zero for an impossible one that another program has stored."""
    return seconds if abs(seconds) < _BEYOND_ALL else 0.0


def lengths_of(rows: QuerySet[Metric], types: Collection[str]) -> dict[str, tuple[Lengths, Lengths]]:
    """Sum up how long the jobs of some types waited and ran."""
    found: dict[str, list[Mapping[str, Any]]] = {name: [] for name in types}
    for row in rows.filter(type__in=types).values("type", "waited", "waited_sum", "ran", "ran_sum"):
        found[row["type"]].append(row)
    return {name: (_sum(several, "waited"), _sum(several, "ran")) for name, several in found.items()}


def _sum(rows: Sequence[Mapping[str, Any]], name: str) -> Lengths:
    return Lengths(read(*(row[name] for row in rows)), sum(amount(row[f"{name}_sum"]) for row in rows))
