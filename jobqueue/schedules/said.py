"""What a person or the code says about a schedule, validated."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from jobqueue import foreign_json
from jobqueue.clock import from_text, to_text
from jobqueue.errors import InvalidOption, duration
from jobqueue.handlers.job_options import no_option_of_a_job
from jobqueue.handlers.options import Options, in_utc
from jobqueue.handlers.registry import JobType
from jobqueue.policy.schedules.rule import Rule
from jobqueue.records.schedule import SAID, Missed, Overlap, ScheduleRecord, WhilePaused

#: The options of jobs that a schedule may set. ``expires_after`` counts from the slot.
OPTIONS = ("queue", "priority", "max_retries", "timeout", "tenant", "workspace", "unique_key", "expires_after")
_CHOICES = {"missed": Missed, "overlap": Overlap, "while_paused": WhilePaused}
_MOST_JITTER = timedelta(days=1)


def said(kind: JobType, rule: Rule, zone: str, payload: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that describe a schedule. Raise InvalidOption for a wrong one.

    ``payload`` is valid JSON text. ``given`` has options of ``schedule()``.
    """
    options = {name: value for name, value in given.items() if name not in _OWN}
    start, end = _moment("start", given.get("start")), _moment("end", given.get("end"))
    if start is not None and end is not None and end <= start:
        raise InvalidOption("end", "must be after start")
    jitter = duration(given.get("jitter", 0), "jitter")
    if jitter > _MOST_JITTER:
        raise InvalidOption("jitter", "must be at most a day")
    choices = {name: _choice(name, given[name], kind_) for name, kind_ in _CHOICES.items() if name in given}
    found = {
        "type": kind.name,
        "rule": rule.text,
        "zone": rule.tz or zone,
        "payload": payload,
        "payload_version": kind.payload.version,
        "options": stored_options(kind, options),
        "start_at": start,
        "end_at": end,
        "max_runs": _count("max_runs", given.get("max_runs")),
        "jitter": jitter,
        "missed_cap": _count("missed_cap", given.get("missed_cap", 100), 10_000),
        **choices,
    }
    if "unique_key" in options and found.get("overlap", Overlap.ALLOW) is not Overlap.ALLOW:
        raise InvalidOption("unique_key", "cannot be combined with overlap, which uses a key of its own")
    return found


_OWN = {"start", "end", "jitter", "max_runs", "missed_cap", *_CHOICES}


def stored_options(kind: JobType, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a schedule's jobs as JSON values."""
    for name in given:
        if name in ("scheduled_at", "expires_at", "delay", "idempotency_key"):
            raise InvalidOption(name, f"is not an option of schedules. The options are {', '.join(OPTIONS)}")
        if name not in OPTIONS:
            raise no_option_of_a_job(name)
    kept = {name: value for name, value in given.items() if value is not None}
    for name in ("timeout", "expires_after"):
        if name in kept:
            kept[name] = duration(kept[name], name).total_seconds()
    job_options(kind, kept)
    return kept


def job_options(kind: JobType, stored: Mapping[str, object]) -> tuple[Options, timedelta | None]:
    """Return the options of a schedule's jobs, and how long after their slot they expire. Raises InvalidOption."""
    given: dict[str, Any] = {name: value for name, value in stored.items() if name in OPTIONS}
    after = given.pop("expires_after", None)
    expires_after = None if after is None else duration(after, "expires_after")
    if expires_after is not None and not expires_after:
        raise InvalidOption("expires_after", "must be longer than zero")
    return kind.options.but(**given, delay=0), expires_after


def _moment(name: str, value: object) -> datetime | None:
    if value is None:
        return None
    if not isinstance(value, datetime):
        raise InvalidOption(name, f"must be a datetime, got {value!r}")
    try:
        return in_utc(value)
    except (OverflowError, ValueError):
        raise InvalidOption(name, f"must be a moment that exists in every time zone, got {value!r}") from None


def _choice(name: str, value: object, kind: Any) -> Any:
    try:
        return kind(value)
    except ValueError:
        raise InvalidOption(name, f"must be one of {', '.join(kind)}, got {value!r}") from None


def _count(name: str, value: object, most: int = 1_000_000_000) -> int | None:
    if value is None and name == "max_runs":
        return None
    if type(value) is not int or not 1 <= value <= most:
        raise InvalidOption(name, f"must be a whole number from 1 to {most}, got {value!r}")
    return value


def to_json(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields of a schedule as JSON values. The payload is decoded, because databases write it differently."""
    plain = {name: _plain(value) for name, value in fields.items()}
    payload = foreign_json.read(plain["payload"]) if isinstance(plain.get("payload"), str) else None
    return plain if isinstance(payload, foreign_json.Unreadable | None) else plain | {"payload": payload}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return to_text(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    return str(value) if isinstance(value, (Missed, Overlap, WhilePaused)) else value


def from_json(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return stored fields of a schedule. Unknown names are left out."""
    fields = {name: value for name, value in stored.items() if name in SAID}
    if "payload" in fields:
        fields["payload"] = json.dumps(fields["payload"], ensure_ascii=False)
    for name in ("start_at", "end_at"):
        if fields.get(name):
            fields[name] = from_text(fields[name])
    if "jitter" in fields:
        fields["jitter"] = timedelta(seconds=fields["jitter"])
    return fields | {name: kind(fields[name]) for name, kind in _CHOICES.items() if name in fields}


def told(schedule: ScheduleRecord) -> dict[str, Any]:
    """Return the fields of a schedule that a person or the code says, as JSON values."""
    return to_json({name: getattr(schedule, name) for name in SAID})
