"""How drafts become jobs, or meet the jobs that hold their keys."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Protocol

from django.db.backends.base.base import BaseDatabaseWrapper

from jobqueue import foreign_json
from jobqueue.errors import IdempotencyMismatch, JobQueueError
from jobqueue.records import Admission, Draft, Receipt
from jobqueue.states import ACTIVE

CHUNK = 1_000
_KEY_TRIES = 10


class _Table(Protocol):
    """What is asked of a backend."""

    @property
    def connection(self) -> BaseDatabaseWrapper: ...
    def insert(self, draft: Draft) -> bool: ...
    def insert_all(self, drafts: Sequence[Draft]) -> set[str]: ...
    def write(self) -> AbstractContextManager[object]: ...
    def reading(self) -> AbstractContextManager[None]: ...


class Drafts:
    """Stores drafts in the caller's transaction."""

    def __init__(self, table: _Table) -> None:
        self._table = table

    def admit(self, draft: Draft) -> Receipt:
        """Store one draft, or find the job that has its key."""
        for _ in range(_KEY_TRIES):
            if self._table.insert(draft):
                return Receipt(draft.id, Admission.CREATED)
            # Whoever holds the key; or the draft was stored before, and its job holds its key no more.
            holders = self._holders([draft]) or self._holders([replace(draft, idempotency_key=None, unique_key=None)])
            if holders:
                return _existing(draft, next(iter(holders.values())))
        raise JobQueueError(f"The key of the {draft.type!r} job changed hands {_KEY_TRIES} times; enqueue it again.")

    def admit_all(self, drafts: Sequence[Draft]) -> list[Receipt]:
        """Store drafts, all or none, or find the jobs that have their keys."""
        # In key order, so that two bulks with common keys wait for each other in the same order: no deadlock.
        ordered = sorted(drafts, key=_key)
        with self._table.write():
            chunks = [ordered[start : start + CHUNK] for start in range(0, len(ordered), CHUNK)]
            created = set[str]().union(*(self._table.insert_all(chunk) for chunk in chunks))
            rest = [draft for draft in drafts if draft.id not in created]
            holders = self._holders(rest) if rest else {}
            receipts = {
                draft.id: _existing(draft, holders[_key(draft)]) if _key(draft) in holders else self.admit(draft)
                for draft in rest
            }
        return [receipts.get(draft.id) or self._first(draft, created) for draft in drafts]

    @staticmethod
    def _first(draft: Draft, created: set[str]) -> Receipt:
        """Say that a draft made its job; one that is listed twice meets itself the second time."""
        outcome = Admission.CREATED if draft.id in created else Admission.EXISTING
        created.discard(draft.id)
        return Receipt(draft.id, outcome)

    def _holders(self, drafts: Sequence[Draft]) -> dict[tuple[str, str], tuple[str, str, str]]:
        """Read who holds the drafts' keys: id, type and payload, by column and key."""
        found: dict[tuple[str, str], tuple[str, str, str]] = {}
        active = ", ".join(f"'{status}'" for status in sorted(ACTIVE))
        for column, condition in (
            ("idempotency_key", ""),
            ("unique_key", f" AND status IN ({active})"),
            ("id", ""),
        ):
            keys = [key for name, key in map(_key, drafts) if name == column]
            for start in range(0, len(keys), CHUNK):
                part = keys[start : start + CHUNK]
                marks = ", ".join(["%s"] * len(part))
                with self._table.reading(), self._table.connection.cursor() as cursor:
                    cursor.execute(
                        f"SELECT {column}, id, type, payload FROM job_queue WHERE {column} IN ({marks}){condition}",
                        part,
                    )
                    found.update({(column, row[0]): (row[1], row[2], row[3]) for row in cursor.fetchall()})
        return found


def _key(draft: Draft) -> tuple[str, str]:
    """The column and value under which a draft may meet an older job; without a key, its own id."""
    return draft.key or ("id", draft.id)


def _existing(draft: Draft, holder: tuple[str, str, str]) -> Receipt:
    job_id, job_type, payload = holder
    if job_type != draft.type:
        raise IdempotencyMismatch(_key(draft)[1], job_id, job_type, draft.type)
    differs = payload != draft.payload and foreign_json.read(payload) != foreign_json.read(draft.payload)
    return Receipt(job_id, Admission.EXISTING, payload_differs=differs)
