"""The functions that enqueue by a type's name and read jobs, for callers that do not import the handler."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Unpack

from asgiref.sync import sync_to_async
from django.db import transaction

from jobqueue import backends
from jobqueue.api.admission import admit, without_blocking
from jobqueue.api.handler import Handler, handler_of
from jobqueue.api.receipts import Receipt
from jobqueue.errors import InvalidOption, JobNotFound
from jobqueue.handlers.registry import registry
from jobqueue.handlers.typed_options import JobOptions
from jobqueue.records import Draft, JobRecord


def find(target: str | Handler[..., Any, ...]) -> Handler[..., Any, ...]:
    """Return the handler with the given name. Raise UnknownJobType, with the nearest names, if there is none."""
    return handler_of(registry.get(target)) if isinstance(target, str) else target


def enqueue(name: str, payload: object = None, /, **options: Unpack[JobOptions]) -> Receipt:
    """Store a job by the name of its type, for callers that don't import the handler. See Handler.enqueue()."""
    return admit([_draft_of(name, payload, options)])[0]


async def aenqueue(name: str, payload: object = None, /, **options: Unpack[JobOptions]) -> Receipt:
    """Async version of ``enqueue()``."""
    return await without_blocking(lambda: enqueue(name, payload, **options))


def enqueue_many(drafts: Iterable[Draft]) -> list[Receipt]:
    """Store drafts of any types in a few statements: all of them or none."""
    listed = list(drafts)
    for one in listed:
        if not isinstance(one, Draft):
            raise InvalidOption("drafts", f"must be made by handler.draft(), got {type(one).__name__}")
    return admit(listed)


async def aenqueue_many(drafts: Iterable[Draft]) -> list[Receipt]:
    """Async version of ``enqueue_many()``."""
    listed = list(drafts)
    return await without_blocking(lambda: enqueue_many(listed))


def enqueue_on_commit(
    target: str | Handler[..., Any, ...],
    payload: object = None,
    /,
    *,
    using: str | None = None,
    **options: Unpack[JobOptions],
) -> None:
    """Validate a job now, and store it once the transaction of another database (``using``) has committed.

    This is for a queue in a database of its own. The two commits are separate: a process that dies between them loses
    the job. If the queue shares the application's database, use ``enqueue``, which has no such gap.
    """
    draft = _draft_of(target, payload, options)
    transaction.on_commit(lambda: admit([draft]), using=using)


def get(job_id: str) -> JobRecord:
    """Return a job with its history, wherever it was relayed to. Raise JobNotFound if there is none."""
    found = backends.look_up(job_id)
    if found is None:
        raise JobNotFound(job_id)
    return found


async def aget(job_id: str) -> JobRecord:
    """Async version of ``get()``."""
    return await sync_to_async(get)(job_id)


def _draft_of(target: str | Handler[..., Any, ...], payload: object, options: JobOptions) -> Draft:
    handler = find(target)
    if options:
        handler = handler.using(**options)
    return handler.job_type.decide(handler.options, {} if payload is None else payload)
