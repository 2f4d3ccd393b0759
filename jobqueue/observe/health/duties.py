"""Findings about the duties that one worker does for all."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from jobqueue.observe.health.finding import Cause, Finding, Level, Place
from jobqueue.observe.health.reading import Reading

#: A failure is no news after this: no worker of this release does the duty any more.
FORGET_AFTER = timedelta(days=1)


def duty_failing(seen: Reading) -> Iterator[Finding]:
    """Find duties whose last turn failed."""
    for one in seen.duties:
        if one.failure and one.ran_at and seen.now - one.ran_at < FORGET_AFTER:
            yield Finding(
                level=Level.WARNING,
                cause=Cause.DUTY_FAILING,
                place=Place.WORKERS,
                duty=one.name,
                since=one.failing_since,
                reason=one.failure,
            )
