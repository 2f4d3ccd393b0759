"""The operator's actions on jobs, on queues and types, and on workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice
from math import inf
from typing import Any

from jobqueue import backends, queues
from jobqueue.clock import SYSTEM
from jobqueue.errors import InvalidOption, NotEditable, duration
from jobqueue.handlers.limits import declared_book, with_keys
from jobqueue.handlers.options import Options, in_utc
from jobqueue.handlers.options import name as check_name
from jobqueue.handlers.options import reason as check_reason
from jobqueue.handlers.registry import JobType, registry
from jobqueue.policy.retry import Seconds
from jobqueue.records import Amendment, Draft, Filter, Ground, Handled, JobRecord, Limit, Refusal, Scope, WorkerRequest
from jobqueue.states import ACTIVE, JobStatus, Move, sources

BATCH = 500

#: The statuses each action takes if a filter names none. Cancelled jobs are only retried by id, or if the filter names
#: their status.
RETRIED = frozenset({JobStatus.DEAD_LETTER})
AMENDED = frozenset({JobStatus.QUEUED})
CANCELLED = ACTIVE
PURGED = frozenset(JobStatus) - ACTIVE

Told = Callable[[int], object]
_Verb = Callable[[Sequence[str]], Handled]


def retry(ids: Iterable[str], told: Told | None = None, every: Seconds = 0, after: Seconds = 0) -> Handled:
    """Put failed jobs and dead letters back into their queues.

    The first job is due after ``after``, and each other job ``every`` later than the previous job. ``told`` is called
    with the number of jobs handled so far.
    """
    return _each(_retrying(every, after), _batches(ids), told)


def retry_edited(job_id: str, payload: object, seen: datetime | None = None) -> Handled:
    """Put one failed job or dead letter back with another payload: JSON data that fits its type's current form.

    The previous payload is kept in the job's context. If ``seen`` is the job's ``updated_at`` as the caller read it, a
    job that has changed since is left alone. Raises NotEditable for a type with ``editable=False``, UnknownJobType for
    a type without a handler here, and PayloadUnfit or PayloadRefused for an invalid payload; then nothing is changed.
    """
    backend = backends.current()
    found = backend.jobs.get(job_id)
    if found is None:
        return Handled(refused=(Ground.MISSING.refusal(job_id),))
    kind = registry.get(found.type)
    if not kind.editable:
        raise NotEditable(found.type)
    edited = kind.payload.dump_edited(payload)
    draft = _keyed(kind, found, edited)
    keys = (draft.concurrency_key, draft.fair_key)
    return _woken(backend.operator.retry_edited(job_id, edited, kind.payload.version, seen, *keys))


def _keyed(kind: JobType, job: JobRecord, payload: str) -> Draft:
    """Return a draft with the keys that a job has with another payload."""
    draft = Draft(id=job.id, type=kind.name, payload=payload, payload_version=kind.payload.version, queue=job.queue)
    return with_keys(kind, replace(draft, tenant=job.tenant, workspace=job.workspace))


def amend(ids: Iterable[str], amendment: Amendment, told: Told | None = None) -> Handled:
    """Change the queue, priority or due time of queued jobs. Raises InvalidOption for values outside the bounds."""
    return _each(_amending(amendment), _batches(ids), told)


def cancel(ids: Iterable[str], told: Told | None = None) -> Handled:
    """Cancel queued jobs, and ask running ones to stop."""
    return _each(_cancel, _batches(ids), told)


def purge(ids: Iterable[str], told: Told | None = None) -> Handled:
    """Delete jobs and their history."""
    return _each(_purge, _batches(ids), told)


def retry_matching(wanted: Filter, limit: int | None = None, told: Told | None = None, every: Seconds = 0) -> Handled:
    """Retry the first ``limit`` jobs that match a filter: dead letters, unless it names statuses."""
    return _each(_retrying(every), _found(retriable(wanted), limit), told)


def amend_matching(wanted: Filter, amendment: Amendment, limit: int | None = None, told: Told | None = None) -> Handled:
    """Amend the first ``limit`` queued jobs that match a filter."""
    return _each(_amending(amendment), _found(amendable(wanted), limit), told)


def cancel_matching(wanted: Filter, limit: int | None = None, told: Told | None = None) -> Handled:
    """Cancel the first ``limit`` queued and running jobs that match a filter."""
    return _each(_cancel, _found(cancellable(wanted), limit), told)


def purge_matching(wanted: Filter, limit: int | None = None, told: Told | None = None) -> Handled:
    """Delete the first ``limit`` jobs that match a filter: ended jobs, unless it names statuses."""
    return _each(_purge, _found(purgeable(wanted), limit), told)


def retriable(wanted: Filter) -> Filter:
    """Narrow a filter to the jobs that ``retry_matching`` takes. Refuse a status that can't be retried."""
    return _narrowed(wanted, RETRIED, sources(Move.REVIVE), "retried")


def amendable(wanted: Filter) -> Filter:
    """Narrow a filter to the jobs that ``amend_matching`` takes."""
    return _narrowed(wanted, AMENDED, AMENDED, "amended")


def cancellable(wanted: Filter) -> Filter:
    """Narrow a filter to the jobs that ``cancel_matching`` takes."""
    return _narrowed(wanted, CANCELLED, CANCELLED, "cancelled")


def purgeable(wanted: Filter) -> Filter:
    """Narrow a filter to the jobs that ``purge_matching`` takes: ended ones, and queued ones if the filter says so."""
    return _narrowed(wanted, PURGED, frozenset(JobStatus) - {JobStatus.IN_PROGRESS}, "purged")


def pause(scope: Scope, name: str, reason: str = "") -> bool:
    """Stop workers from taking jobs of a queue or type. Return whether it wasn't paused before."""
    check_name(scope.value, name)
    check_reason("reason", reason)
    return backends.current().operator.pause(scope, name, reason.strip())


def resume(scope: Scope, name: str) -> bool:
    """Undo a pause, and wake the workers. Return whether the queue or type was paused."""
    backend = backends.current()
    was_paused = backend.operator.resume(scope, name)
    if was_paused:
        backend.wake_on_commit()
    return was_paused


def set_limit(limit: Limit, reason: str = "", author: str = "") -> None:
    """Store a limit that replaces the one in code, on every worker within a second.

    Raises InvalidOption for a key that the code doesn't declare there, because no job would have a value for it.
    """
    check_name(limit.scope.value, limit.name)
    check_reason("reason", reason)
    limit, declared = _under_current_name(limit), declared_book(registry)
    known = {one.key for one in declared.of_target(limit.scope, limit.name)} - {""}
    if limit.key and limit.key not in known:
        has = f"those there are {', '.join(sorted(known))}" if known else "there is none there"
        raise InvalidOption("key", f"must be declared in code, which stores its value with each job; {has}")
    backend = backends.current()
    backend.limits.set(limit, reason.strip(), author)
    backend.wake_on_commit()


def _under_current_name(limit: Limit) -> Limit:
    """Return a limit of a type by its current name, if it is given by an alias."""
    is_known = limit.scope is Scope.TYPE and limit.name in registry.names
    return replace(limit, name=registry.get(limit.name).name) if is_known else limit


def unset_limit(limit: Limit) -> bool:
    """Delete a stored limit, so that the one in code applies again. Return whether there was one."""
    backend = backends.current()
    was_stored = backend.limits.unset(_under_current_name(limit))
    if was_stored:
        backend.wake_on_commit()
    return was_stored


def ask_worker(owner: str, request: WorkerRequest | None) -> bool:
    """Ask a worker to take no more jobs or to stop, or with ``None`` to take jobs again.

    It obeys at its next heartbeat, within ten seconds. Return whether there is such a worker.
    """
    return backends.current().workers.ask(owner, request)


def _retrying(every: Seconds, after: Seconds = 0) -> _Verb:
    """Return a function that retries a batch of jobs, and continues the pace of the batches before."""
    step, due_in = duration(every, "every"), duration(after, "after")

    def retry_batch(ids: Sequence[str]) -> Handled:
        nonlocal due_in
        handled = _woken(backends.current().operator.retry(ids, due_in, step))
        due_in += len(ids) * step
        return handled

    return retry_batch


def _amending(amendment: Amendment) -> _Verb:
    said = {"queue": amendment.queue, "priority": amendment.priority, "scheduled_at": amendment.scheduled_at}
    changes: dict[str, Any] = {name: value for name, value in said.items() if value is not None}
    if not changes and not amendment.now:
        raise InvalidOption("amendment", "changes nothing")
    if amendment.now and amendment.scheduled_at is not None:
        raise InvalidOption("scheduled_at", "cannot be combined with now")
    checked = replace(amendment, scheduled_at=in_utc(Options(**changes).scheduled_at))
    return lambda ids: _woken(backends.current().operator.amend(ids, checked), _age(checked))


def _age(amendment: Amendment) -> float:
    """Return how many seconds ago amended jobs became due: any number of seconds if their times are kept."""
    if amendment.now:
        return 0.0
    due_at = amendment.scheduled_at
    return inf if due_at is None else max(0.0, (SYSTEM.now() - due_at).total_seconds())


def _woken(handled: Handled, age: float = 0.0) -> Handled:
    """Wake the workers after the commit if any job was changed, because some may be due."""
    if handled.done:
        backends.current().wake_on_commit(age)
    return handled


def _cancel(ids: Sequence[str]) -> Handled:
    return _lanes_woken(backends.current().operator.cancel(ids))


def _purge(ids: Sequence[str]) -> Handled:
    return _lanes_woken(backends.current().operator.purge(ids))


def _lanes_woken(handled: Handled) -> Handled:
    """Wake the workers if the jobs may have held others of their lanes."""
    return _woken(handled) if any(one.ordered for one in queues.own_orders().values()) else handled


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
    """Yield pages of matching jobs. Each job is yielded once, even if it fails again meanwhile."""
    backend, after, left = backends.current(), None, limit
    while left is None or left > 0:
        batch = backend.jobs.find_ids(wanted, BATCH if left is None else min(BATCH, left), after)
        if not batch:
            return
        yield batch
        after, left = batch[-1], None if left is None else left - len(batch)


def _each(verb: _Verb, batches: Iterable[Sequence[str]], told: Told | None) -> Handled:
    done: list[str] = []
    refused: list[Refusal] = []
    asked: list[str] = []
    for batch in batches:
        handled = verb(batch)
        done += handled.done
        refused += handled.refused
        asked += handled.asked
        if told:
            told(len(done) + len(refused))
    return Handled(tuple(done), tuple(refused), tuple(asked))
