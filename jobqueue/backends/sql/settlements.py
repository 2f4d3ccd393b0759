"""The storing of settlements: through the fence, with the history and the follow-up jobs that belong to them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence, Set
from typing import Any

from jobqueue import foreign_json
from jobqueue.backends.sql.drafts import Drafts
from jobqueue.backends.sql.session import Session
from jobqueue.durations import in_seconds
from jobqueue.errors import IdempotencyMismatch
from jobqueue.models import Attempt, Job
from jobqueue.records import ClaimKey, Draft, Followed, Settled, Settlement
from jobqueue.states import MOVES, Move


class Settlements(ABC):
    """Stores what attempts came to, inside a transaction of the caller's."""

    def __init__(self, session: Session, drafts: Drafts) -> None:
        self._session = session
        self._drafts = drafts

    @abstractmethod
    def write(self, settlements: Sequence[Settlement]) -> set[ClaimKey]:
        """Write settlements through the fence, in the order given. Return the claims whose settlement was accepted."""

    def store(self, settlements: Sequence[Settlement]) -> Settled:
        """Write settlements, and store the history, the last progress and the follow-up jobs of those accepted."""
        ordered = in_order(settlements)
        return self.store_rest(settlements, ordered, self.write(ordered) if ordered else set())

    def store_rest(
        self, settlements: Sequence[Settlement], ordered: Sequence[Settlement], accepted: Set[ClaimKey]
    ) -> Settled:
        """Store what belongs to the settlements that were accepted."""
        failed = [one for one in ordered if one.failure and one.claim in accepted]
        if failed:
            self._store_history(failed)
        for one in ordered:
            if one.progress is not None and one.claim in accepted:
                self._store_progress(one.id, one.fence, one.progress)
        completed = [one for one in ordered if one.move is Move.COMPLETE and one.claim in accepted]
        children = [child for one in completed for child in one.children]
        return Settled(refused(settlements, accepted), self._follow(children))

    def _store_progress(self, job_id: str, fence: int, text: str) -> None:
        """Store the last progress of an attempt that was settled just now, whose row is locked by that."""
        self._session.rows(Job).filter(pk=job_id, fence=fence).update(progress=foreign_json.read(text))

    def _follow(self, children: Sequence[Draft]) -> tuple[Followed, ...]:
        """Store follow-up jobs. If one of them can't be stored, each goes by itself, so that the others are stored."""
        if not children:
            return ()
        try:
            return tuple(map(Followed, children, self._drafts.admit_all(children)))
        except IdempotencyMismatch:
            return tuple(self._follow_alone(child) for child in children)

    def _follow_alone(self, child: Draft) -> Followed:
        try:
            return Followed(child, self._drafts.admit_all([child])[0])
        except IdempotencyMismatch as error:
            return Followed(child, None, str(error))

    def _store_history(self, settlements: Sequence[Settlement]) -> None:
        ids = [one.id for one in settlements]
        with self._session.connection.cursor() as cursor:
            marks = ", ".join(["%s"] * len(ids))
            cursor.execute(f"SELECT id, attempts FROM job_queue WHERE id IN ({marks})", ids)
            attempts = dict(cursor.fetchall())
        now = self._session.now()
        self._session.rows(Attempt).bulk_create(
            [
                Attempt(
                    job_id=one.id,
                    fence=one.fence,
                    attempt=attempts[one.id] + MOVES[one.move].refunds,
                    owner=one.owner,
                    ending=one.failure.ending,
                    error_class=one.failure.error_class,
                    message=one.failure.message,
                    traceback=one.failure.traceback,
                    duration=in_seconds(one.failure.duration),
                    ended_at=now,
                )
                for one in settlements
                if one.failure
            ],
            ignore_conflicts=True,  # a foreign claim never raises the fence, so its number may have its row already
        )


def in_order(settlements: Sequence[Settlement]) -> list[Settlement]:
    """Return the first settlement of each claim, in one order for all writers of many rows: no two deadlock."""
    offers = {one.claim: one for one in reversed(settlements)}
    return sorted(offers.values(), key=lambda one: one.claim)


def refused(settlements: Sequence[Settlement], accepted: Set[ClaimKey]) -> tuple[Settlement, ...]:
    """Return the settlements that were not stored: their claim is not held, or was settled by an earlier one."""
    seen: set[ClaimKey] = set()
    left = []
    for one in settlements:
        if one.claim not in accepted or one.claim in seen:
            left.append(one)
        seen.add(one.claim)
    return tuple(left)


def settlement_values(settlement: Settlement) -> dict[str, Any]:
    """Return what SETTLE reads as ``v``, except for the moments, which each vendor spells in its own way."""
    failure, rule = settlement.failure, MOVES[settlement.move]
    return {
        "id": settlement.id,
        "fence": settlement.fence,
        "owner": settlement.owner,
        "target": rule.target.value,
        "result": settlement.result,
        "end_reason": settlement.end_reason,
        "error": failure.message if failure and failure.message else None,
        "fingerprint": failure.fingerprint if failure else None,
        "refund": int(rule.refunds),
        "crashed": int(settlement.move is Move.QUARANTINE),
    }
