"""Rolled-back transactions, and the jobs enqueued in them."""

from __future__ import annotations

from collections.abc import Callable

from django.db import transaction

import jobqueue
from benchmarks.faults.catalogue import fault
from benchmarks.faults.jobs import KINDS
from benchmarks.faults.laboratory import Laboratory
from benchmarks.faults.ledger import What
from jobqueue.records import Draft


class _RolledBack(Exception):
    """Ends a transaction."""


def _enqueue(lab: Laboratory) -> Draft:
    """Enqueue in the current transaction, and record the result once that has ended."""
    draft = KINDS["short"].handler.draft(**KINDS["short"].payload(lab.rng))
    lab.ledger.note(What.TRYING, draft.id, kind="short", expects="completed")
    jobqueue.enqueue_many([draft])
    return draft


def _dwell(lab: Laboratory) -> None:
    """Sometimes pause, so that workers have time to see what they must not see."""
    if lab.rng.random() < 0.2:
        lab.pause(0.05)


def _committed(lab: Laboratory) -> None:
    with transaction.atomic():
        draft = _enqueue(lab)
    lab.ledger.note(What.ACCEPTED, draft.id)


def _raised(lab: Laboratory) -> None:
    try:
        with transaction.atomic():
            draft = _enqueue(lab)
            _dwell(lab)
            raise _RolledBack
    except _RolledBack:
        lab.ledger.note(What.REFUSED, draft.id)


def _outer(lab: Laboratory) -> None:
    try:
        with transaction.atomic():
            with transaction.atomic():
                draft = _enqueue(lab)
            _dwell(lab)
            raise _RolledBack
    except _RolledBack:
        lab.ledger.note(What.REFUSED, draft.id)


def _savepoint(lab: Laboratory) -> None:
    with transaction.atomic():
        before = _enqueue(lab)
        try:
            with transaction.atomic():
                refused = _enqueue(lab)
                raise _RolledBack
        except _RolledBack:
            after = _enqueue(lab)
        _dwell(lab)
    for draft, what in ((before, What.ACCEPTED), (refused, What.REFUSED), (after, What.ACCEPTED)):
        lab.ledger.note(what, draft.id)


def _silently(lab: Laboratory) -> None:
    with transaction.atomic():
        draft = _enqueue(lab)
        transaction.set_rollback(True)
    lab.ledger.note(What.REFUSED, draft.id)


def _announced(lab: Laboratory) -> None:
    """Roll back a transaction with an on_commit enqueue. Such a job would have an id that was never recorded."""
    try:
        with transaction.atomic():
            jobqueue.enqueue_on_commit(KINDS["short"].handler, KINDS["short"].payload(lab.rng))
            raise _RolledBack
    except _RolledBack:
        return


_WAYS: tuple[Callable[[Laboratory], None], ...] = (_raised, _outer, _savepoint, _silently, _announced)


@fault("T25", "jobs enqueued in transactions that are rolled back")
def rolled_back(lab: Laboratory) -> None:
    """Roll back transactions that have enqueued, in whole or in part: no such job is ever seen, no other is lost."""
    lab.crew.start(2, processes=1, concurrency=4, lease=lab.lease)
    while lab.goes_on():
        _committed(lab)
        way = _WAYS[lab.injections % len(_WAYS)]
        way(lab)
        lab.injected(way.__name__.strip("_"))
