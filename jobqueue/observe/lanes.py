"""The lanes of ordered queues, and what holds a job in its lane."""

from __future__ import annotations

from collections.abc import Iterable

from jobqueue.backends.base import Backend
from jobqueue.handlers.limits import declared_book
from jobqueue.handlers.registry import registry
from jobqueue.policy.limits.limits import LimitBook
from jobqueue.records import JobRecord, LaneHold, LaneRecord


def hold_of(backend: Backend, job: JobRecord) -> LaneHold | None:
    """Return what holds a queued job in its lane, or ``None`` if nothing does."""
    book = _book()
    return backend.lanes.hold_of(book, job) if book.is_ordered(job.queue) else None


def lanes_of(backend: Backend, queues: Iterable[str], most: int) -> list[LaneRecord]:
    """List the lanes of those of some queues that are ordered, of each at most ``most``."""
    book = _book()
    return backend.lanes.all(book, [one for one in sorted(set(queues)) if book.is_ordered(one)], most)


def _book() -> LimitBook:
    return declared_book(registry)
