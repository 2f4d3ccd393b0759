"""Findings about schedules."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from jobqueue.observe.health.finding import Cause, Finding, Level, Place
from jobqueue.observe.health.reading import Reading

#: How long a slot may be due before it is late. Workers look every second.
LATE = timedelta(seconds=60)


def schedule_late(seen: Reading) -> Iterator[Finding]:
    """Find schedules whose slot no worker has fired: none is up, or none knows the type."""
    for one in seen.late_schedules:
        if not one.trouble:
            yield Finding(
                level=Level.WARNING,
                cause=Cause.SCHEDULE_LATE,
                place=Place.SCHEDULES,
                schedule=one.name,
                types=(one.type,),
                since=one.next_at,
            )


def schedule_in_trouble(seen: Reading) -> Iterator[Finding]:
    """Find schedules that make no jobs because of what is in their rows."""
    for one in seen.late_schedules:
        if one.trouble:
            yield Finding(
                level=Level.WARNING,
                cause=Cause.SCHEDULE_IN_TROUBLE,
                place=Place.SCHEDULES,
                schedule=one.name,
                types=(one.type,),
                reason=one.trouble,
            )
