"""Enqueueing on the record: the ledger has each attempt before it is made, and its result afterwards."""

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

#: Classes of SQLSTATE that leave the result unknown: the connection broke, or the server shuts down.
_TELLS_NOTHING = ("08", "57")


Store = Callable[[Draft], object]


def alone(draft: Draft) -> None:
    """Store a job alone."""
    jobqueue.enqueue_many([draft])


def with_rows(draft: Draft) -> None:
    """Store a job like an application: in a transaction that has read before, and writes rows of its own."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM laboratory_effect")
        cursor.execute("INSERT INTO laboratory_effect (job_id) VALUES (%s)", [draft.id])
        jobqueue.enqueue_many([draft])


def enqueue(ledger: Ledger, kind: str, rng: Random, store: Store = alone, **payload: Any) -> str | None:
    """Enqueue one job with a random payload and the given additions. Return its id if it was accepted."""
    draft = KINDS[kind].handler.draft(**KINDS[kind].payload(rng), **payload)
    return tried(ledger, draft, store, kind=kind, expects=KINDS[kind].expects)


def tried(ledger: Ledger, draft: Draft, store: Store = alone, **facts: Any) -> str | None:
    """Enqueue a draft on the record. Return its id if it was accepted."""
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
    """Return whether the database refused. A broken connection isn't a refusal."""
    state = getattr(error.__cause__, "sqlstate", None)
    return isinstance(error, DatabaseBusy) or bool(state and state[:2] not in _TELLS_NOTHING)


def _words(error: Error) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]
