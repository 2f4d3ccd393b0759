"""The settlements, in memory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

from jobqueue import conf
from jobqueue.backends.memory.drafts import MemoryDrafts
from jobqueue.backends.memory.tables import MemoryTables
from jobqueue.errors import IdempotencyMismatch
from jobqueue.records import (
    Claim,
    Draft,
    Ending,
    Followed,
    JobRecord,
    PastAttempt,
    Progress,
    Settled,
    Settlement,
)
from jobqueue.states import MOVES, JobStatus, Move


class MemorySettlements:
    """Stores outcomes of held claims. Its callers have the lock of the tables."""

    def __init__(self, tables: MemoryTables, drafts: MemoryDrafts) -> None:
        self._tables = tables
        self._drafts = drafts

    def held(self, claim: Claim | Settlement | Progress) -> JobRecord | None:
        """The fence: return the row only to the holder of its newest claim."""
        row = self._tables.jobs.get(claim.id)
        held = (
            row is not None
            and row.fence == claim.fence
            and row.lease_owner == claim.owner
            and row.status is JobStatus.IN_PROGRESS
        )
        return row if held else None

    def store(self, offers: Sequence[Settlement]) -> Settled:
        """Store settlements, and the follow-up jobs of completed jobs."""
        refused = tuple(one for one in offers if not self.settle(one))
        children = [
            child for one in offers if one.move is Move.COMPLETE and one not in refused for child in one.children
        ]
        return Settled(refused, tuple(self._follow(child) for child in children))

    def _follow(self, child: Draft) -> Followed:
        try:
            return Followed(child, self._drafts.admit(child))
        except IdempotencyMismatch as error:
            return Followed(child, None, str(error))

    def settle(self, offer: Settlement) -> bool:
        """Store one settlement. Return whether its claim was held."""
        row = self.held(offer)
        if row is None:
            return False
        now, rule, failure = self._tables.now(), MOVES[offer.move], offer.failure
        stopped = rule.target is JobStatus.QUEUED and row.cancel_requested_at is not None
        goes_back = rule.target is JobStatus.QUEUED and not stopped
        moved = row.scheduled_at if offer.delay is None else now + offer.delay
        self._tables.change(
            row.id,
            status=JobStatus.FAILED if stopped else rule.target,
            end_reason=None if goes_back else "cancelled" if stopped else offer.end_reason,
            scheduled_at=moved if goes_back else row.scheduled_at,
            started_at=None if goes_back else row.started_at,
            completed_at=None if goes_back else now,
            result=None if offer.result is None else json.loads(offer.result),
            error=failure.message if failure and failure.message else row.error,
            error_fingerprint=failure.fingerprint if failure and failure.fingerprint else row.error_fingerprint,
            attempts=row.attempts - rule.refunds,
            crash_count=row.crash_count + (offer.move is Move.QUARANTINE),
            progress=row.progress if offer.progress is None else json.loads(offer.progress),
            context=row.context if offer.context is None else json.loads(offer.context),
            completed_by=row.lease_owner if rule.target is JobStatus.COMPLETED else row.completed_by,
            lease_owner=None,
            lease_until=None,
            history=row.history if failure is None else (*row.history, _past(row, offer, now)),
        )
        if offer.move is Move.BURY and failure and failure.fingerprint:
            self._tables.errors.setdefault((failure.fingerprint, conf.get("RELEASE")), now)
        return True


def _past(row: JobRecord, offer: Settlement, now: datetime) -> PastAttempt:
    failure = offer.failure
    if failure is None:
        raise AssertionError("only an attempt that did not succeed is remembered")
    return PastAttempt(
        fence=row.fence,
        attempt=row.attempts,
        owner=offer.owner,
        ending=Ending(failure.ending),
        error_class=failure.error_class,
        message=failure.message,
        traceback=failure.traceback,
        duration=failure.duration,
        ended_at=now,
        release=conf.get("RELEASE"),
    )
