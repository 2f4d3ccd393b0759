"""The limits in force, where each comes from, and what is in use."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from jobqueue.backends.base import Backend
from jobqueue.handlers.limits import declared_book
from jobqueue.handlers.registry import registry
from jobqueue.policy.limits.limits import LimitBook
from jobqueue.records import JobRecord, Limit, LimitUse, StoredLimit


@dataclass(frozen=True, slots=True)
class LimitState:
    """A limit in force. ``in_code`` is the number in this release's code, ``stored`` the limit that replaces it."""

    limit: Limit
    in_code: int | None
    stored: StoredLimit | None
    uses: tuple[LimitUse, ...] = ()


def book_of(backend: Backend) -> LimitBook:
    """Return the limits in force: those in this release's code, and the stored ones."""
    return declared_book(registry).with_stored(one.limit for one in backend.limits.stored())


def limits_in_force(backend: Backend) -> tuple[LimitBook, dict[str, StoredLimit]]:
    """Return the limits in force, and the stored ones among them by place."""
    stored = {one.limit.place: one for one in backend.limits.stored()}
    return declared_book(registry).with_stored(one.limit for one in stored.values()), stored


def limit_states(backend: Backend, queues: Iterable[str]) -> list[LimitState]:
    """Return the limits of these queues and of all types, with what is in use."""
    stored = {one.limit.place: one for one in backend.limits.stored()}
    code = declared_book(registry)
    book = code.with_stored(one.limit for one in stored.values())
    types = sorted({*registry.names, *(one.limit.name for one in stored.values() if one.limit.scope == "type")})
    pairs = [(queue, kind) for queue in sorted({*queues, *_named_queues(book)}) for kind in types]
    limits = {limit.place: limit for pair in pairs for limit in book.of(*pair)}
    in_code = {limit.place: limit.number for pair in pairs for limit in code.of(*pair)}
    uses: dict[str, list[LimitUse]] = {}
    for use in backend.limits.uses(book, pairs):
        uses.setdefault(use.limit.place, []).append(use)
    return [
        LimitState(limit, in_code.get(place), stored.get(place), tuple(uses.get(place, ())))
        for place, limit in sorted(limits.items())
    ]


def used_up(backend: Backend, job: JobRecord) -> list[LimitUse]:
    """Return the limits that keep a job from starting."""
    book = book_of(backend)
    if not book.of(job.queue, job.type):
        return []
    kind = (job.queue, job.type, job.concurrency_key)
    return [one for one in backend.limits.uses_of(book, [kind]) if one.is_used_up]


def _named_queues(book: LimitBook) -> list[str]:
    return [name for name in book.queue_patterns if "*" not in name]
