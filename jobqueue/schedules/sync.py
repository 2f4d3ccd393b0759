"""The synchronisation of the code's schedules with the table."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from jobqueue.backends.base import Backend
from jobqueue.errors import InvalidOption
from jobqueue.handlers.registry import registry
from jobqueue.ids import new_id
from jobqueue.policy.schedules.plan import next_slot
from jobqueue.policy.schedules.rule import read_rule
from jobqueue.records.schedule import Origin, ScheduleRecord
from jobqueue.schedules.declared import declared
from jobqueue.schedules.said import from_json, told

logger = logging.getLogger("jobqueue")

_JUST_BEFORE = timedelta(microseconds=1)


@dataclass(frozen=True)
class Synced:
    """The names of the schedules that were made, changed, or marked because they left the code."""

    made: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    taken: tuple[str, ...] = ()


def sync(backend: Backend) -> Synced:
    """Bring the table up to what the code declares. What an operator paused or changed stays."""
    stored, now, code = {one.name: one for one in backend.schedules.all()}, backend.now(), declared()
    made, changed, taken = [], [], []
    for name, fields in code.items():
        row = stored.get(name)
        if row is None:
            if backend.schedules.add(new_schedule(name, fields, now, Origin.CODE)):
                made.append(name)
        elif row.origin is not Origin.CODE:
            taken.append(name)
        elif (changes := _merged(row, fields)) and _change(backend, row, changes, now):
            changed.append(name)
    gone = [one for one in stored.values() if _has_left(one, code)]
    left = [one.name for one in gone if backend.schedules.change(one, left_code_at=now)]
    for name in taken:
        logger.warning("The code declares the schedule %s, but an operator made one of this name, which stays", name)
    return Synced(tuple(made), tuple(changed), tuple(left), tuple(taken))


def _change(backend: Backend, row: ScheduleRecord, changes: dict[str, Any], now: datetime) -> bool:
    """Store changes, unless what an operator or another program left of the row can't be read."""
    try:
        return backend.schedules.change(row, **with_next_slot(row, changes, now))
    except Exception as error:
        if not (isinstance(error, InvalidOption) or backend.lies_in_row(error)):
            raise
        logger.error("The schedule %s keeps what its row says, which is wrong: %s", row.name, error)
        return False


def _has_left(row: ScheduleRecord, code: Mapping[str, object]) -> bool:
    """Return whether a schedule left the code: this process knows its type, so it would know the schedule too."""
    known = row.type in registry.names
    return row.origin is Origin.CODE and row.left_code_at is None and known and row.name not in code


def new_schedule(name: str, fields: Mapping[str, Any], now: datetime, origin: Origin) -> ScheduleRecord:
    """Return a schedule whose slots begin now, or at its start."""
    start = fields.get("start_at")
    row = ScheduleRecord(
        **{"id": new_id(), "name": name, "origin": origin, **fields},
        last_slot_at=now if start is None else max(now, start - _JUST_BEFORE),
    )
    declared_as = told(row) if origin is Origin.CODE else {}
    return ScheduleRecord(**_fields(row) | with_next_slot(row, {"declared": declared_as}, now))


def _fields(row: ScheduleRecord) -> dict[str, Any]:
    return {name: getattr(row, name) for name in ScheduleRecord.__dataclass_fields__}


def with_next_slot(row: ScheduleRecord, changes: dict[str, Any], now: datetime) -> dict[str, Any]:
    """Return changes with the next slot that follows from them, and without trouble. Raises InvalidOption."""
    changed = ScheduleRecord(**_fields(row) | changes)
    start = changed.start_at
    if start is not None and start > now and "start_at" in changes:
        changes["last_slot_at"] = max(changed.last_slot_at, start - _JUST_BEFORE)
        changed = ScheduleRecord(**_fields(row) | changes)
    elif {"rule", "zone"} & changes.keys():  # past moments were no slots of the new rule
        changes["last_slot_at"] = max(changed.last_slot_at, now)
        changed = ScheduleRecord(**_fields(row) | changes)
    rule = read_rule(changed.rule, changed.zone, changed.start_at)
    return changes | {"next_at": next_slot(changed, rule, changed.last_slot_at), "trouble": ""}


def _merged(row: ScheduleRecord, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the changes that the code makes. A field that an operator changed keeps the operator's value."""
    fresh = new_schedule(row.name, fields, row.last_slot_at, Origin.CODE)
    code, before, now = told(fresh), row.declared, told(row)
    new = {name: value for name, value in code.items() if before.get(name, now[name]) == now[name] != value}
    changes: dict[str, Any] = from_json(new)
    if code != before:
        changes["declared"] = code
    if row.left_code_at is not None:
        changes["left_code_at"] = None
    return changes


def differences(row: ScheduleRecord) -> dict[str, tuple[object, object]]:
    """Return the fields that an operator changed, with the code's value and the operator's."""
    now = told(row)
    return {name: (value, now[name]) for name, value in row.declared.items() if name in now and now[name] != value}


def reset(backend: Backend, row: ScheduleRecord) -> bool:
    """Take the code's values for everything that an operator changed. Return whether something changed.

    Raises InvalidOption if another program changed what the row keeps of the code's values.
    """
    try:
        fields = from_json({name: row.declared[name] for name in differences(row)})
        return bool(fields) and backend.schedules.change(row, **with_next_slot(row, fields, backend.now()))
    except Exception as error:
        if isinstance(error, InvalidOption) or not backend.lies_in_row(error):
            raise
        raise InvalidOption(
            "declared", f"of the schedule {row.name!r} is no schedule: {type(error).__name__}"
        ) from error
