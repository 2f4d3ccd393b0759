"""Values as text for people and as JSON for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from math import isfinite
from typing import Any

from jobqueue.clock import to_text
from jobqueue.observe.wording import Wording

_UNITS = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))


def plain(value: Any) -> Any:
    """Convert records to JSON: times to ISO 8601 in UTC, durations to seconds, anything unknown to text."""
    if isinstance(value, datetime):
        return to_text(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float) and not isfinite(value):
        return str(value)  # Python reads JSON's 1e999 as infinity, which JSON can't express
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (Sequence, frozenset)):
        return [plain(inner) for inner in value]
    return str(value)


def moment(value: datetime | None) -> str:
    """Format a time to the second."""
    return "-" if value is None else to_text(value)[:19] + "Z"


def length(value: timedelta) -> str:
    """Format a duration in its two largest units: ``3d 4h``, ``5m 10s``, ``0s``."""
    seconds = max(int(value.total_seconds()), 0)
    parts: list[str] = []
    for unit, size in _UNITS:
        if seconds >= size or (unit == "s" and not parts):
            parts.append(f"{seconds // size}{unit}")
            seconds %= size
    return " ".join(parts[:2])


def ago(value: datetime | None, now: datetime) -> str:
    """Format how long ago a time was, or how far ahead it is."""
    if value is None:
        return "-"
    return f"in {length(value - now)}" if value > now else f"{length(now - value)} ago"


def counted(count: int, noun: str = "job", *, capped: bool = False) -> str:
    """Format a number of things: ``1 job``, ``2,000 jobs``, or ``10,000+ jobs`` if there are more."""
    return f"{count:,}{'+' if capped else ''} {noun}" + ("" if count == 1 and not capped else "s")


#: How sentences are written in a terminal.
WORDING = Wording(moment, length, ago, "{:,}".format)
