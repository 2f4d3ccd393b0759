"""The admission of drafts: each is stored as a job, unless another job already has its key or stands for it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from jobqueue import foreign_json
from jobqueue.backends.sql import repeat_statements as statements
from jobqueue.backends.sql.session import Session
from jobqueue.errors import IdempotencyMismatch, JobQueueError
from jobqueue.models import Throttle
from jobqueue.records import Admission, Draft, DraftReceipt
from jobqueue.states import ACTIVE

CHUNK = 1_000
_KEY_TRIES = 10

#: The id, type and payload of a job that has the key of a draft.
Holder = tuple[str, str, str]


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

    @abstractmethod
    def insert_or_move(self, draft: Draft) -> Holder | None:
        """Store a debounced draft, or move the queued job that has its key, in one statement. Return the job.

        Return ``None`` if the job with the key is running or has another type.
        """

    @abstractmethod
    def let_through(self, draft: Draft) -> bool:
        """Make a throttled draft stand for others with its key, in one statement, unless another job does."""

    def admit(self, draft: Draft) -> DraftReceipt:
        """Store one draft, or return the job that has its key or stands for it."""
        if draft.debounce is not None:
            return self._debounced(draft)
        return self._plain(draft) if draft.throttle is None else self._throttled(draft)

    def _plain(self, draft: Draft) -> DraftReceipt:
        for _ in range(_KEY_TRIES):
            if self.insert(draft):
                return DraftReceipt(draft.id, Admission.CREATED)
            # If no job has the key, this draft may have been stored before, and its job may have given up the key.
            holders = self._holders([draft]) or self._holders([replace(draft, idempotency_key=None, unique_key=None)])
            if holders:
                return _existing(draft, next(iter(holders.values())))
        raise JobQueueError(f"The key of the {draft.type!r} job changed hands {_KEY_TRIES} times; enqueue it again.")

    def _debounced(self, draft: Draft) -> DraftReceipt:
        found = self.insert_or_move(draft)
        if found is None:
            with self._session.write_transaction():
                found = self._after_running(draft)
        return DraftReceipt(draft.id, Admission.CREATED) if found[0] == draft.id else _existing(draft, found)

    def _after_running(self, draft: Draft) -> Holder:
        """Store a draft whose key a running job has. That job may have read old data, so it doesn't stand for it."""
        for _ in range(_KEY_TRIES):
            holder = self._holders([draft]).get(_key(draft))
            if holder is not None and holder[1] != draft.type:
                return holder
            self._execute(statements.RELEASE, draft.unique_key)
            if (found := self.insert_or_move(draft)) is not None:
                return found
        raise JobQueueError(f"The key of the {draft.type!r} job changed hands {_KEY_TRIES} times; enqueue it again.")

    def _throttled(self, draft: Draft) -> DraftReceipt:
        with self._session.write_transaction():
            if self.let_through(draft):
                receipt = self._plain(draft)
                if not receipt.created:  # an older job with the key has not ended yet
                    self._execute(statements.REPLACE_STANDING, receipt.id, draft.unique_key)
                return receipt
            ((job_id, job_type),) = self._execute(statements.STANDING, draft.unique_key)
            by_id = replace(draft, id=job_id, unique_key=None)
            return _existing(draft, self._holders([by_id]).get(_key(by_id), (job_id, job_type, draft.payload)))

    def forget_throttles(self) -> None:
        """Delete the keys for which no job stands any longer."""
        old = self._session.rows(Throttle).filter(until__lt=self._session.now())

        def work() -> None:
            free = old.order_by("until").select_for_update(skip_locked=True)
            keys = list(free.values_list("pk", flat=True)[: statements.FORGOTTEN_AT_ONCE])
            old.filter(pk__in=keys).delete()

        if old.exists():
            self._session.transact(work)

    def _execute(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        with self._session.connection.cursor() as cursor:
            cursor.execute(statement, parameters)
            return cursor.fetchall() if cursor.description else []

    def admit_all(self, drafts: Sequence[Draft]) -> list[DraftReceipt]:
        """Store drafts, all or none. For each taken key, return the job that has it."""
        # Two transactions that store the same keys take them in the same order, so they can't deadlock.
        plain = [one for one in drafts if not _repeats(one)]
        ordered = sorted((one for one in plain if one.lane is None), key=_key)
        in_lanes = [one for one in plain if one.lane is not None]  # in the order of the call
        repeating = sorted(filter(_repeats, drafts), key=_key)
        with self._session.write_transaction():
            created = self._insert_lanes(in_lanes)
            for start in range(0, len(ordered), CHUNK):
                created |= self.insert_all(ordered[start : start + CHUNK])
            rest = [draft for draft in plain if draft.id not in created]
            holders = self._holders(rest) if rest else {}
            receipts = {
                draft.id: _existing(draft, holders[_key(draft)]) if _key(draft) in holders else self.admit(draft)
                for draft in rest
            }
            receipts |= {draft.id: self.admit(draft) for draft in repeating}
        return [receipts.get(draft.id) or self._first(draft, created) for draft in drafts]

    def _insert_lanes(self, drafts: Sequence[Draft]) -> set[str]:
        """Store drafts of ordered queues. The locks of all their lanes are taken at once, in one order."""
        if len(drafts) > CHUNK:
            self.lock_lanes(drafts)
        created = set[str]()
        for start in range(0, len(drafts), CHUNK):
            created |= self.insert_all(drafts[start : start + CHUNK])
        return created

    def lock_lanes(self, drafts: Sequence[Draft]) -> None:  # noqa: B027 - SQLite has one lock for all
        """Wait until no other transaction stores jobs in the lanes of drafts, and keep others out until this ends."""

    def in_free_lanes(self, drafts: Sequence[Draft]) -> Sequence[Draft]:
        """Lock the lanes of drafts without waiting. Return the drafts, without the lanes that others have locked.

        A claim gives the jobs of those their places.
        """
        return drafts  # SQLite has one lock for all

    @staticmethod
    def _first(draft: Draft, created: set[str]) -> DraftReceipt:
        """Return the receipt of a stored draft. If it is listed twice, the second receipt is for an existing job."""
        outcome = Admission.CREATED if draft.id in created else Admission.EXISTING
        created.discard(draft.id)
        return DraftReceipt(draft.id, outcome)

    def _holders(self, drafts: Sequence[Draft]) -> dict[tuple[str, str], Holder]:
        """Return id, type and payload of the jobs that have the drafts' keys, by column and key."""
        found: dict[tuple[str, str], Holder] = {}
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


def _repeats(draft: Draft) -> bool:
    """Return whether a draft needs statements of its own."""
    return draft.debounce is not None or draft.throttle is not None


def _existing(draft: Draft, holder: Holder) -> DraftReceipt:
    job_id, job_type, payload = holder
    if job_type != draft.type:
        raise IdempotencyMismatch(_key(draft)[1], job_id, job_type, draft.type)
    differs = payload != draft.payload and foreign_json.read(payload) != foreign_json.read(draft.payload)
    return DraftReceipt(job_id, Admission.EXISTING, payload_differs=differs)
