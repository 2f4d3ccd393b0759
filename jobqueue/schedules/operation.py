"""What operators do with schedules, from the command and the admin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobqueue import backends
from jobqueue.errors import InvalidOption, JobQueueError
from jobqueue.handlers.options import name as check_name
from jobqueue.handlers.options import reason as check_reason
from jobqueue.handlers.registry import registry
from jobqueue.policy.nearest import did_you_mean
from jobqueue.policy.schedules.rule import read_rule, zone_of
from jobqueue.records import DraftReceipt
from jobqueue.records.schedule import Origin, ScheduleRecord, WhilePaused
from jobqueue.schedules.firing import draft_of
from jobqueue.schedules.said import said, to_json, told
from jobqueue.schedules.sync import new_schedule, with_next_slot


class ScheduleNotFound(JobQueueError, LookupError):
    """No schedule has the name."""


class ScheduleChanged(JobQueueError):
    """Somebody else changed the schedule at the same time, so nothing was changed."""

    def __init__(self, name: str) -> None:
        super().__init__(f"The schedule {name!r} was changed by somebody else meanwhile. Look at it and try again.")


def find(name: str) -> ScheduleRecord:
    """Return a schedule by name or id. Raise ScheduleNotFound, with the nearest name, if there is none."""
    found = backends.current().schedules.get(name)
    if found is None:
        near = did_you_mean(name, [one.name for one in backends.current().schedules.all()])
        raise ScheduleNotFound(f"There is no schedule {name!r}. {near}")
    return found


def pause(schedule: ScheduleRecord, reason: str = "") -> bool:
    """Stop a schedule. Return ``False`` if it was paused already."""
    check_reason("reason", reason)
    if schedule.paused_at is not None:
        return False
    _change(schedule, paused_at=backends.current().now(), pause_reason=reason)
    return True


def resume(schedule: ScheduleRecord) -> bool:
    """End the pause of a schedule. Its slots are dropped or count as missed, as the schedule says."""
    if schedule.paused_at is None:
        return False
    now = backends.current().now()
    changes: dict[str, Any] = {"paused_at": None, "pause_reason": ""}
    if schedule.while_paused is WhilePaused.DROP:
        changes["last_slot_at"] = max(schedule.last_slot_at, now)
    _change(schedule, **with_next_slot(schedule, changes, now))
    return True


def run_now(schedule: ScheduleRecord) -> DraftReceipt:
    """Store a job of a schedule now, beside its slots. Paused schedules run too. Raises what is wrong with it."""
    kind, backend = registry.get(schedule.type), backends.current()
    kind.payload.load(schedule.payload, schedule.payload_version)
    receipt = backend.schedules.run_now(schedule, draft_of(schedule, kind))
    backend.wake_on_commit()
    return receipt


def add(name: str, fields: Mapping[str, Any]) -> ScheduleRecord:
    """Store a schedule that an operator made. Raises InvalidOption."""
    check_name("name", name)
    backend = backends.current()
    made = new_schedule(name, dict(fields), backend.now(), Origin.DATABASE)
    if not backend.schedules.add(made):
        raise InvalidOption("name", f"is taken: there is a schedule {name!r} already")
    return made


def edit(schedule: ScheduleRecord, fields: Mapping[str, Any]) -> None:
    """Store the fields that an operator changed. Raises InvalidOption and ScheduleChanged."""
    before, after = told(schedule), to_json(fields)
    changes = {name: value for name, value in fields.items() if before[name] != after[name]}
    if changes or schedule.trouble:
        _change(schedule, **with_next_slot(schedule, changes, backends.current().now()))


def read_fields(type_name: str, rule: str, zone: str, payload: object, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return validated fields of a schedule from texts that a person wrote.

    Raises UnknownJobType, InvalidOption, PayloadUnfit and PayloadRefused.
    """
    kind = registry.get(type_name)
    zone_of(zone)
    return said(kind, read_rule(rule, zone), zone, kind.payload.dump_edited(payload), given)


def _change(schedule: ScheduleRecord, **changes: Any) -> None:
    if not backends.current().schedules.change(schedule, **changes):
        raise ScheduleChanged(schedule.name)
