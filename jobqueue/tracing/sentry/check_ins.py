"""Check-ins: Sentry's monitors of schedules, one for each schedule, with a check-in for each slot's job."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import timedelta
from hashlib import sha256
from typing import Any
from uuid import NAMESPACE_OID, uuid5

import sentry_sdk

from jobqueue import foreign_json
from jobqueue.policy.schedules.rule import Cron, Every, read_rule
from jobqueue.records import Settlement
from jobqueue.records.schedule import ScheduleRecord
from jobqueue.states import Move

#: The key of the monitor in a job's context.
KEY = "sentry-monitor"

_IN_PROGRESS, _OK, _ERROR = "in_progress", "ok", "error"
#: What a move says about the slot. After the other moves, the job runs again, and the check-in goes on.
_STATUSES = {Move.COMPLETE: _OK, Move.BURY: _ERROR, Move.CANCEL: _ERROR}

_LONGEST_SLUG = 50
_SLUG = re.compile(r"[a-z0-9_-]{1,50}")
_UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60))
#: Minutes. A slot is missed if its job hasn't begun so long after it, or later by the schedule's jitter.
_MARGIN = 5
#: Minutes. Sentry's default, and its maximum.
_SHORTEST_RUN, _LONGEST_RUN = 30, 40_320
_LONGEST_TEXT = 200


def monitor_of(schedule: ScheduleRecord, longest: timedelta) -> dict[str, Any] | None:
    """Return the monitor of a schedule, or ``None`` if Sentry can't express its rule.

    Thresholds are left out, so that those set in Sentry stay.
    """
    when = _schedule_of(read_rule(schedule.rule, schedule.zone, schedule.start_at))
    if when is None:
        return None
    runs = max(_SHORTEST_RUN, math.ceil(longest.total_seconds() / 60))
    config = {
        "schedule": when,
        "timezone": schedule.zone,
        "checkin_margin": _MARGIN + math.ceil(schedule.jitter.total_seconds() / 60),
        "max_runtime": min(runs, _LONGEST_RUN),
    }
    return {"slug": slug_of(schedule.name), "config": config}


def _schedule_of(rule: object) -> dict[str, Any] | None:
    """Return a rule in Sentry's form, which knows nothing shorter than a minute."""
    if isinstance(rule, Cron):
        line = rule.five_fields
        return None if line is None else {"type": "crontab", "value": line}
    if not isinstance(rule, Every):
        return None
    seconds = rule.interval.total_seconds()
    unit = next(((name, size) for name, size in _UNITS if seconds >= size and seconds % size == 0), None)
    return unit and {"type": "interval", "value": int(seconds // unit[1]), "unit": unit[0]}


def slug_of(name: str) -> str:
    """Return the name of a schedule in the form that Sentry takes, unique even if it must be changed a lot."""
    slug = re.sub(r"[^a-z0-9_-]+", "-", name.lower()).strip("-")
    if slug == name and len(slug) <= _LONGEST_SLUG and not slug.isdigit():
        return slug
    unique = sha256(name.encode("utf-8", "replace")).hexdigest()[:8]
    return f"{slug[: _LONGEST_SLUG - 9] or 'schedule'}-{unique}"


def monitor_in(context: str | None) -> tuple[str, dict[str, Any]] | None:
    """Read the monitor of a job. What other programs stored may be anything, so unusual values are left out."""
    if not context or KEY not in context:
        return None
    facts = foreign_json.read(context)
    found = facts.get(KEY) if isinstance(facts, dict) else None
    if not isinstance(found, dict) or not _SLUG.fullmatch(str(found.get("slug"))):
        return None
    config = found.get("config")
    return (found["slug"], config) if isinstance(config, dict) and _is_valid(config) else None


def _is_valid(config: Mapping[str, Any]) -> bool:
    when = config.get("schedule")
    if set(config) != {"schedule", "timezone", "checkin_margin", "max_runtime"} or not isinstance(when, dict):
        return False
    numbers = (config["checkin_margin"], config["max_runtime"])
    texts = (config["timezone"], when.get("type"), when.get("unit", ""))
    value = when.get("value")
    return (
        set(when) <= {"type", "value", "unit"}
        and all(type(one) is int and 0 < one <= _LONGEST_RUN for one in numbers)
        and all(isinstance(one, str) and len(one) <= _LONGEST_TEXT for one in texts)
        and (
            0 < value <= _LONGEST_RUN if type(value) is int else isinstance(value, str) and len(value) <= _LONGEST_TEXT
        )
    )


def send(
    monitor: tuple[str, dict[str, Any]],
    job_id: str,
    settlement: Settlement | None = None,
    lasted: timedelta | None = None,
) -> None:
    """Send the check-in of a job that begins or, with a settlement, ends. All attempts of a job share a check-in."""
    slug, config = monitor
    status = _IN_PROGRESS if settlement is None else _STATUSES.get(settlement.move)
    if status is None:
        return
    sentry_sdk.crons.capture_checkin(
        monitor_slug=slug,
        check_in_id=uuid5(NAMESPACE_OID, job_id).hex,
        status=status,
        duration=None if lasted is None else lasted.total_seconds(),
        monitor_config=config,  # type: ignore[arg-type]
    )
