"""Admission of drafts: jobs are stored in the caller's transaction and announced after its commit."""

from __future__ import annotations

import asyncio
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import TypeVar

from asgiref.sync import sync_to_async
from django.db import connections

from jobqueue import backends, conf, tracing
from jobqueue.api import capacity, watch
from jobqueue.api.receipts import Receipt
from jobqueue.backends.base import Backend
from jobqueue.clock import SYSTEM
from jobqueue.observe import announce
from jobqueue.records import Admission, Draft

R = TypeVar("R")

#: The receipt of a job that wasn't stored. Ids are typed as texts, because only a queue that sheds has such receipts.
_SHED: Receipt = Receipt(None, Admission.SHED)  # type: ignore[arg-type]


def admit(drafts: Sequence[Draft]) -> list[Receipt]:
    """Store drafts, and announce the new ones once the caller's transaction has committed."""
    backend = backends.current()
    if len(connections.settings) > 1:
        _warn_of_split_transactions()
    if capacity.is_bounded(drafts):
        return _admit_fitting(backend, drafts)
    return _store(backend, drafts)


def _admit_fitting(backend: Backend, drafts: Sequence[Draft]) -> list[Receipt]:
    """Store the drafts that fit into their queues. The others are shed."""
    kept = capacity.fitting(backend, drafts)
    stored = [draft for draft in drafts if draft.id in kept]
    receipts = iter(_store(backend, stored))
    found = [next(receipts) if draft.id in kept else _SHED for draft in drafts]
    new = [draft for draft, receipt in zip(drafts, found, strict=True) if receipt.created]
    capacity.note(backend, new, [draft for draft in drafts if draft.id not in kept])
    return found


def _store(backend: Backend, drafts: Sequence[Draft]) -> list[Receipt]:
    began = SYSTEM.monotonic()
    receipts = tracing.publish(drafts, backend.enqueue)
    created = [draft for draft, receipt in zip(drafts, receipts, strict=True) if receipt.created]
    if created:
        backend.on_commit(lambda: _announce(backend, created, began))
        if (watching := watch.current()) is not None:
            watching(backend)
    return [Receipt(one.id, one.outcome, one.payload_differs) for one in receipts]


async def without_blocking(work: Callable[[], R]) -> R:
    """Enqueue from async code. While a queue has no room, wait here, where other tasks go on."""
    began, token = SYSTEM.monotonic(), capacity.is_async.set(True)
    try:
        while True:
            try:
                return await sync_to_async(work)()
            except capacity.NoRoom as error:
                if SYSTEM.monotonic() - began >= error.most:
                    raise error.full.because(f"it has had no room for {error.most:g} s") from None
                await asyncio.sleep(error.pause)
    finally:
        capacity.is_async.reset(token)


def _announce(backend: Backend, drafts: Sequence[Draft], began: float) -> None:
    backend.wake(_age(drafts, SYSTEM.monotonic() - began))
    announce.enqueued(drafts)


def _age(drafts: Sequence[Draft], lasted: float) -> float:
    """Return how many seconds ago the oldest of the drafts became due, if its transaction has lasted so long."""
    moments = [draft.scheduled_at for draft in drafts if draft.scheduled_at is not None]
    return max(lasted, (SYSTEM.now() - min(moments)).total_seconds()) if moments else lasted


def _warn_of_split_transactions() -> None:
    """Warn, once per calling line, that a job would survive the rollback of another database's transaction."""
    alias = conf.get("DATABASE")
    if connections[alias].in_atomic_block:
        return
    others = [one.alias for one in connections.all(initialized_only=True) if one.in_atomic_block]
    if others:
        warnings.warn(
            f'A job is enqueued into the database "{alias}" inside a transaction of "{others[0]}": it is stored '
            f"immediately and stays if that transaction rolls back. Use "
            f'jobqueue.enqueue_on_commit(..., using="{others[0]}"), or keep the queue in "{others[0]}".',
            RuntimeWarning,
            stacklevel=_level_of_caller(),
        )


def _level_of_caller() -> int:
    """Return the stack level of the first frame outside this package, which the warning should point at."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).split(".")[0] == __name__.split(".")[0]:
        level, frame = level + 1, frame.f_back
    return level
