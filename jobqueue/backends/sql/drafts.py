"""The admission of drafts: each becomes a job, or meets the job that holds its key."""

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
        """Store one draft in one statement. Return ``False`` if a key was in its way."""

    @abstractmethod
    def insert_all(self, drafts: Sequence[Draft]) -> set[str]:
        """Store drafts in few statements. Return the ids of those that no key was in the way of."""

    def admit(self, draft: Draft) -> DraftReceipt:
        """Store one draft, or find the job that has its key."""
        for _ in range(_KEY_TRIES):
            if self.insert(draft):
                return DraftReceipt(draft.id, Admission.CREATED)
            # The job that holds the key; or the draft was stored before, and its job no longer holds its key.
            holders = self._holders([draft]) or self._holders([replace(draft, idempotency_key=None, unique_key=None)])
            if holders:
                return _existing(draft, next(iter(holders.values())))
        raise JobQueueError(f"The key of the {draft.type!r} job changed hands {_KEY_TRIES} times; enqueue it again.")

    def admit_all(self, drafts: Sequence[Draft]) -> list[DraftReceipt]:
        """Store drafts, all or none, or find the jobs that have their keys."""
        # In key order, so that two bulks with common keys wait for each other in the same order: no deadlock.
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
        """Return the receipt of a draft that made its job. One that is listed twice meets itself the second time."""
        outcome = Admission.CREATED if draft.id in created else Admission.EXISTING
        created.discard(draft.id)
        return DraftReceipt(draft.id, outcome)

    def _holders(self, drafts: Sequence[Draft]) -> dict[tuple[str, str], tuple[str, str, str]]:
        """Read the jobs that hold the drafts' keys: id, type and payload, by column and key."""
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
    """The column and value under which a draft may meet an older job; without a key, its own id."""
    return draft.key or ("id", draft.id)


def _existing(draft: Draft, holder: tuple[str, str, str]) -> DraftReceipt:
    job_id, job_type, payload = holder
    if job_type != draft.type:
        raise IdempotencyMismatch(_key(draft)[1], job_id, job_type, draft.type)
    differs = payload != draft.payload and foreign_json.read(payload) != foreign_json.read(draft.payload)
    return DraftReceipt(job_id, Admission.EXISTING, payload_differs=differs)
