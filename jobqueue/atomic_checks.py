"""The check of atomic handlers whose transaction does not hold what they write."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from django.core.checks import CheckMessage
from django.core.checks import Warning as Caution
from django.db import DEFAULT_DB_ALIAS

from jobqueue.handlers.registry import JobType


def divided(kinds: Iterable[JobType], alias: str) -> Iterator[CheckMessage]:
    """Name the atomic job types of a queue that is in another database than what handlers write by default."""
    for kind in kinds:
        if kind.atomic and alias != DEFAULT_DB_ALIAS:
            yield Caution(
                f"The atomic job type {kind.name!r} works in a transaction of {alias!r}, where the queue is: what it "
                "writes to 'default' is no part of it. That stays where an attempt fails or loses its lease, and the "
                "next attempt writes it again.",
                hint=f"Keep the queue in 'default', or leave atomic out and write a handler that may run twice. If it "
                f"writes to {alias!r} alone, silence jobqueue.W010.",
                id="jobqueue.W010",
            )
