"""Enqueueing on the record: what was tried is in the ledger before, and what came of it after."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from django.db import Error, connection, transaction

import jobqueue
from benchmarks.faults.jobs import KINDS
from benchmarks.faults.ledger import Ledger, What
from jobqueue.clock import SYSTEM
from jobqueue.errors import DatabaseBusy
from jobqueue.records import Draft

#: Classes of SQLSTATE after which nobody knows what became of a statement: the connection broke, or the server ends.
_TELLS_NOTHING = ("08", "57")


Store = Callable[[Draft], object]


def alone(draft: Draft) -> None:
    """Store a job by itself."""
    jobqueue.enqueue_many([draft])


def with_rows(draft: Draft) -> None:
    """Store a job as an application does: in a transaction that has read before, and writes rows of its own."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM laboratory_effect")
        cursor.execute("INSERT INTO laboratory_effect (job_id) VALUES (%s)", [draft.id])
        jobqueue.enqueue_many([draft])


def enqueue(ledger: Ledger, kind: str, rng: Random, store: Store = alone, **payload: Any) -> str | None:
    """Enqueue one job, with more in its payload than the dice say if need be; return its id if it was accepted."""
    draft = KINDS[kind].handler.draft(**KINDS[kind].payload(rng), **payload)
    return tried(ledger, draft, store, kind=kind, expects=KINDS[kind].expects)


def tried(ledger: Ledger, draft: Draft, store: Store = alone, **facts: Any) -> str | None:
    """Enqueue what is given, on the record; return its id if it was accepted."""
    ledger.note(What.TRYING, draft.id, **facts)
    began, sent = SYSTEM.monotonic(), False
    try:
        connection.ensure_connection()
        sent = True
        store(draft)
    except Error as error:
        outcome = What.REFUSED if not sent or _is_refusal(error) else What.UNKNOWN
        ledger.note(outcome, draft.id, took=SYSTEM.monotonic() - began, error=_words(error))
        if not connection.in_atomic_block:
            connection.close()
        return None
    ledger.note(What.ACCEPTED, draft.id, took=SYSTEM.monotonic() - began)
    return draft.id


def _is_refusal(error: Error) -> bool:
    """Whether the database said no; a connection that broke says nothing."""
    state = getattr(error.__cause__, "sqlstate", None)
    return isinstance(error, DatabaseBusy) or bool(state and state[:2] not in _TELLS_NOTHING)


def _words(error: Error) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]
