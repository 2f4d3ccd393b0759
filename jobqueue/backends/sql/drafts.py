"""The admission of drafts: each is stored as a job, unless another job already has its key."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace

from jobqueue import foreign_json
from jobqueue.backends.sql.session import Session
from jobqueue.errors import IdempotencyMismatch, JobQueueError
from jobqueue.records import Admission, Draft, DraftReceipt
from jobqueue.states import ACTIVE

CHUNK = 1_000
_KEY_TRIES = 10


class Drafts(ABC):
    """Stores drafts in the caller's transaction."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @abstractmethod
    def insert(self, draft: Draft) -> bool:
        """Store one draft in one statement. Return ``False`` if another job has its key."""

    @abstractmethod
    def insert_all(self, drafts: Sequence[Draft]) -> set[str]:
        """Store drafts in a few statements. Return the ids of the stored ones: those whose keys were free."""

    def admit(self, draft: Draft) -> DraftReceipt:
        """Store one draft, or return the job that has its key."""
        for _ in range(_KEY_TRIES):
            if self.insert(draft):
                return DraftReceipt(draft.id, Admission.CREATED)
            # If no job has the key, this draft may have been stored before, and its job may have given up the key.
            holders = self._holders([draft]) or self._holders([replace(draft, idempotency_key=None, unique_key=None)])
            if holders:
                return _existing(draft, next(iter(holders.values())))
        raise JobQueueError(f"The key of the {draft.type!r} job changed hands {_KEY_TRIES} times; enqueue it again.")

    def admit_all(self, drafts: Sequence[Draft]) -> list[DraftReceipt]:
        """Store drafts, all or none. For each taken key, return the job that has it."""
        # Two transactions that store the same keys take them in the same order, so they can't deadlock.
        ordered = sorted(drafts, key=_key)
        with self._session.write_transaction():
            chunks = [ordered[start : start + CHUNK] for start in range(0, len(ordered), CHUNK)]
            created = set[str]().union(*(self.insert_all(chunk) for chunk in chunks))
            rest = [draft for draft in drafts if draft.id not in created]
            holders = self._holders(rest) if rest else {}
            receipts = {
                draft.id: _existing(draft, holders[_key(draft)]) if _key(draft) in holders else self.admit(draft)
                for draft in rest
            }
        return [receipts.get(draft.id) or self._first(draft, created) for draft in drafts]

    @staticmethod
    def _first(draft: Draft, created: set[str]) -> DraftReceipt:
        """Return the receipt of a stored draft. If it is listed twice, the second receipt is for an existing job."""
        outcome = Admission.CREATED if draft.id in created else Admission.EXISTING
        created.discard(draft.id)
        return DraftReceipt(draft.id, outcome)

    def _holders(self, drafts: Sequence[Draft]) -> dict[tuple[str, str], tuple[str, str, str]]:
        """Return id, type and payload of the jobs that have the drafts' keys, by column and key."""
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
                with self._session.reading(), self._session.connection.cursor() as cursor:
                    cursor.execute(
                        f"SELECT {column}, id, type, payload FROM job_queue WHERE {column} IN ({marks}){condition}",
                        part,
                    )
                    found.update({(column, row[0]): (row[1], row[2], row[3]) for row in cursor.fetchall()})
        return found


def _key(draft: Draft) -> tuple[str, str]:
    """Return the column and value that another job may have in common with a draft: a key, or else the id."""
    return draft.key or ("id", draft.id)


def _existing(draft: Draft, holder: tuple[str, str, str]) -> DraftReceipt:
    job_id, job_type, payload = holder
    if job_type != draft.type:
        raise IdempotencyMismatch(_key(draft)[1], job_id, job_type, draft.type)
    differs = payload != draft.payload and foreign_json.read(payload) != foreign_json.read(draft.payload)
    return DraftReceipt(job_id, Admission.EXISTING, payload_differs=differs)
