"""The context of jobs that a schedule makes: what Sentry's check-ins need."""

from __future__ import annotations

import json
import sys
from datetime import timedelta

from jobqueue.records.schedule import ScheduleRecord
from jobqueue.tracing.tracer import harmless, in_use


def context_of_slot(schedule: ScheduleRecord, longest: timedelta) -> str | None:
    """Return the context of a slot's job, whose attempts take at most ``longest`` in total."""
    if "sentry_sdk" not in sys.modules or not in_use():
        return None
    from jobqueue.tracing.sentry import check_ins

    monitor = harmless(lambda: check_ins.monitor_of(schedule, longest))
    return None if monitor is None else json.dumps({check_ins.KEY: monitor})
