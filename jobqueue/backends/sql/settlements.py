"""The storing of settlements through the fence, with their history and follow-up jobs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence, Set
from typing import Any

from jobqueue import conf, foreign_json
from jobqueue.backends.sql.drafts import Drafts
from jobqueue.backends.sql.known_errors import KnownErrors
from jobqueue.backends.sql.session import Session
from jobqueue.durations import in_seconds
from jobqueue.errors import IdempotencyMismatch
from jobqueue.models import Attempt, Job
from jobqueue.records import ClaimKey, Draft, Followed, Settled, Settlement
from jobqueue.states import MOVES, Move


class Settlements(ABC):
    """Stores the settlements of attempts, inside the caller's transaction."""

    def __init__(self, session: Session, drafts: Drafts) -> None:
        self._session = session
        self._drafts = drafts
        self._known_errors = KnownErrors(session)

    @abstractmethod
    def write(self, settlements: Sequence[Settlement]) -> set[ClaimKey]:
        """Write settlements to jobs whose claim is still held. Return the claims whose settlement was accepted."""

    def store(self, settlements: Sequence[Settlement]) -> Settled:
        """Write settlements. For the accepted ones, store history, last progress and follow-up jobs."""
        ordered = in_order(settlements)
        return self.store_rest(settlements, ordered, self.write(ordered) if ordered else set())

    def store_rest(
        self, settlements: Sequence[Settlement], ordered: Sequence[Settlement], accepted: Set[ClaimKey]
    ) -> Settled:
        """Store history, last progress and follow-up jobs of the accepted settlements."""
        failed = [one for one in ordered if one.failure and one.claim in accepted]
        if failed:
            self._store_history(failed)
            self._known_errors.add({one.failure.fingerprint for one in failed if one.failure and one.move is Move.BURY})
        for one in ordered:
            if one.progress is not None and one.claim in accepted:
                self._store_progress(one.id, one.fence, one.progress)
            if one.context is not None and one.claim in accepted:  # only of traced attempts
                self._session.rows(Job).filter(pk=one.id, fence=one.fence).update(
                    context=foreign_json.read(one.context)
                )
        completed = [one for one in ordered if one.move is Move.COMPLETE and one.claim in accepted]
        children = [child for one in completed for child in one.children]
        return Settled(refused(settlements, accepted), self._follow(children))

    def _store_progress(self, job_id: str, fence: int, text: str) -> None:
        """Store the last progress of an attempt. The job's row is locked, because it was settled just now."""
        self._session.rows(Job).filter(pk=job_id, fence=fence).update(progress=foreign_json.read(text))

    def _follow(self, children: Sequence[Draft]) -> tuple[Followed, ...]:
        """Store follow-up jobs. If one of them is refused, store the others one by one.

        They don't wait for producers of their lanes, because the outcomes of other jobs would wait with them.
        """
        if not children:
            return ()
        drafts = self._drafts.in_free_lanes(children)
        try:
            return tuple(map(Followed, children, self._drafts.admit_all(drafts)))
        except IdempotencyMismatch:
            return tuple(map(self._follow_alone, children, drafts))

    def _follow_alone(self, child: Draft, stored: Draft) -> Followed:
        try:
            return Followed(child, self._drafts.admit_all([stored])[0])
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
                    release=conf.get("RELEASE") or None,
                )
                for one in settlements
                if one.failure
            ],
            ignore_conflicts=True,  # if another program claimed a job without raising its fence, the row may exist
        )


def in_order(settlements: Sequence[Settlement]) -> list[Settlement]:
    """Return the first settlement of each claim, sorted, so that two transactions can't deadlock."""
    offers = {one.claim: one for one in reversed(settlements)}
    return sorted(offers.values(), key=lambda one: one.claim)


def refused(settlements: Sequence[Settlement], accepted: Set[ClaimKey]) -> tuple[Settlement, ...]:
    """Return the settlements that were not stored, because the claim was lost or settled before."""
    seen: set[ClaimKey] = set()
    left = []
    for one in settlements:
        if one.claim not in accepted or one.claim in seen:
            left.append(one)
        seen.add(one.claim)
    return tuple(left)


def settlement_values(settlement: Settlement) -> dict[str, Any]:
    """Return the values that SETTLE reads from ``v``, except for times, whose SQL differs between the databases."""
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
