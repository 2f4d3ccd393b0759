"""What an operator may do: retry, cancel and purge by id or by filter, pause and resume."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from jobqueue import backends
from jobqueue.errors import InvalidOption
from jobqueue.handlers.options import name as check_name
from jobqueue.records import Filter, Handled, Refusal, Scope
from jobqueue.states import ACTIVE, JobStatus, Move, sources

BATCH = 500

#: Which statuses each verb takes where a filter names none. A cancelled job is retried by its id or its status only.
RETRIED = frozenset({JobStatus.DEAD_LETTER})
CANCELLED = ACTIVE
PURGED = frozenset(JobStatus) - ACTIVE

Told = Callable[[int], object]
_Verb = Callable[[Sequence[str]], Handled]


def retry(ids: Iterable[str], told: Told | None = None) -> Handled:
    """Put failed jobs and dead letters back into their queues; ``told`` hears how many are dealt with."""
    return _each(_retry, _batches(ids), told)


def cancel(ids: Iterable[str], told: Told | None = None) -> Handled:
    """End queued jobs, and ask running ones to stop."""
    return _each(backends.current().cancel, _batches(ids), told)


def purge(ids: Iterable[str], told: Told | None = None) -> Handled:
    """Delete jobs and their history."""
    return _each(backends.current().purge, _batches(ids), told)


def retry_matching(wanted: Filter, limit: int | None = None, told: Told | None = None) -> Handled:
    """Retry the first ``limit`` jobs of those a filter lets through: dead letters, unless it names statuses."""
    return _each(_retry, _found(retriable(wanted), limit), told)


def cancel_matching(wanted: Filter, limit: int | None = None, told: Told | None = None) -> Handled:
    """Cancel the first ``limit`` jobs of those a filter lets through: queued and running ones."""
    return _each(backends.current().cancel, _found(cancellable(wanted), limit), told)


def purge_matching(wanted: Filter, limit: int | None = None, told: Told | None = None) -> Handled:
    """Delete the first ``limit`` jobs of those a filter lets through: what has ended, unless it names statuses."""
    return _each(backends.current().purge, _found(purgeable(wanted), limit), told)


def retriable(wanted: Filter) -> Filter:
    """Narrow a filter to what ``retry_matching`` takes; a status that cannot be retried is refused."""
    return _narrowed(wanted, RETRIED, sources(Move.REVIVE), "retried")


def cancellable(wanted: Filter) -> Filter:
    """Narrow a filter to what ``cancel_matching`` takes."""
    return _narrowed(wanted, CANCELLED, CANCELLED, "cancelled")


def purgeable(wanted: Filter) -> Filter:
    """Narrow a filter to what ``purge_matching`` takes: never what runs, and what waits only if it is named."""
    return _narrowed(wanted, PURGED, frozenset(JobStatus) - {JobStatus.IN_PROGRESS}, "purged")


def pause(scope: Scope, name: str, reason: str = "") -> bool:
    """Let workers take no more from a queue or of a type; say whether that is new."""
    check_name(scope.value, name)
    return backends.current().pause(scope, name, reason)


def resume(scope: Scope, name: str) -> bool:
    """Undo a pause, and wake the workers; say whether there was one."""
    backend = backends.current()
    was_paused = backend.resume(scope, name)
    if was_paused:
        backend.on_commit(backend.wake)
    return was_paused


def _retry(ids: Sequence[str]) -> Handled:
    backend = backends.current()
    handled = backend.retry(ids)
    if handled.done:
        backend.on_commit(backend.wake)
    return handled


def _narrowed(wanted: Filter, usual: frozenset[JobStatus], possible: frozenset[JobStatus], done: str) -> Filter:
    wrong = sorted(wanted.statuses - possible)
    if wrong:
        raise InvalidOption("status", f"{wrong[0]} cannot be {done}; {' and '.join(sorted(possible))} can")
    return replace(wanted, statuses=wanted.statuses or usual)


def _batches(ids: Iterable[str]) -> Iterator[Sequence[str]]:
    each = iter(dict.fromkeys(ids))
    while batch := list(islice(each, BATCH)):
        yield batch


def _found(wanted: Filter, limit: int | None) -> Iterator[Sequence[str]]:
    """Page through what matches, each job once: one that fails again meanwhile is behind the page, and stays."""
    backend, after, left = backends.current(), None, limit
    while left is None or left > 0:
        batch = backend.find_ids(wanted, BATCH if left is None else min(BATCH, left), after)
        if not batch:
            return
        yield batch
        after, left = batch[-1], None if left is None else left - len(batch)


def _each(verb: _Verb, batches: Iterable[Sequence[str]], told: Told | None) -> Handled:
    done: list[str] = []
    refused: list[Refusal] = []
    for batch in batches:
        handled = verb(batch)
        done += handled.done
        refused += handled.refused
        if told:
            told(len(done) + len(refused))
    return Handled(tuple(done), tuple(refused))
