"""The context of jobs that a schedule makes: what Sentry's check-ins need."""

from __future__ import annotations

import json
from datetime import timedelta
from functools import partial

from jobqueue.records.schedule import ScheduleRecord
from jobqueue.tracing.tracer import harmless, in_use


def context_of_slot(schedule: ScheduleRecord, longest: timedelta) -> str | None:
    """Return the context of a slot's job, whose attempts take at most ``longest`` in total."""
    found: dict[str, object] = {}
    for tracer in in_use():
        found |= harmless(partial(tracer.of_slot, schedule, longest)) or {}
    return json.dumps(found) if found else None
