"""Schedules as rows. Another program may have written any of them, so reading never fails."""

from __future__ import annotations

import json
from datetime import timedelta
from enum import StrEnum
from typing import Any, TypeVar

from jobqueue.durations import from_seconds
from jobqueue.foreign_json import Unreadable
from jobqueue.records.schedule import SAID, Missed, Origin, Overlap, ScheduleRecord, WhilePaused

E = TypeVar("E", bound=StrEnum)

_STATE = (
    *("id", "name", "origin", "revision", "runs", "last_slot_at", "next_at", "missed_at", "last_job_id", "paused_at"),
    *("pause_reason", "left_code_at", "trouble", "declared"),
)
COLUMNS = (*SAID, *_STATE)


def record_of(row: dict[str, Any]) -> ScheduleRecord:
    """Return a row as a record. A value that can't be read becomes one that the evaluation refuses or ignores."""
    payload = row["payload"]
    read = {
        "payload": payload.text if isinstance(payload, Unreadable) else json.dumps(payload, ensure_ascii=False),
        "options": row["options"] if isinstance(row["options"], dict) else {},
        "declared": row["declared"] if isinstance(row["declared"], dict) else {},
        "jitter": from_seconds(row["jitter"]) or timedelta(0),
        "missed": _one_of(Missed, row["missed"], Missed.ONCE),
        "overlap": _one_of(Overlap, row["overlap"], Overlap.ALLOW),
        "while_paused": _one_of(WhilePaused, row["while_paused"], WhilePaused.DROP),
        "origin": _one_of(Origin, row["origin"], Origin.DATABASE),
    }
    return ScheduleRecord(**row | read)


def values_of(schedule: ScheduleRecord, *names: str, **changes: Any) -> dict[str, Any]:
    """Return the columns of a record, or only some of them, with changes."""
    values = {name: changes[name] if name in changes else getattr(schedule, name) for name in names or COLUMNS}
    if "payload" in values:
        values["payload"] = json.loads(values["payload"])
    if "jitter" in values:
        values["jitter"] = values["jitter"].total_seconds()
    for name in ("options", "declared"):
        if name in values:
            values[name] = dict(values[name])
    return values


def _one_of(kind: type[E], value: object, otherwise: E) -> E:
    return next((one for one in kind if one.value == value), otherwise)
