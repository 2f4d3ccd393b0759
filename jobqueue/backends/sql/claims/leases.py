"""Leases: their renewal while jobs run, and the end of those that expired or whose worker is dead."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from jobqueue.backends.base import Judge
from jobqueue.backends.sql.filters import in_status
from jobqueue.backends.sql.obstacles import Obstacles
from jobqueue.backends.sql.session import Session
from jobqueue.backends.sql.settlements import Settlements
from jobqueue.models import Job
from jobqueue.records import Claim, Extension, OverdueLease, Settlement, Sweep
from jobqueue.states import JobStatus


class StoredLeases(ABC):
    """Renews and ends leases. A job for which this fails doesn't affect the others."""

    #: How long after a sweep first finds a lease expired it may be ended. Zero means at once.
    second_look = timedelta(0)

    def __init__(self, session: Session, settlements: Settlements, obstacles: Obstacles) -> None:
        self._session = session
        self._settlements = settlements
        self._obstacles = obstacles

    # Renewal

    def extend(self, claims: Sequence[Claim], lease: timedelta) -> Extension:
        """Renew claims together, or one by one if a row makes the statement fail."""
        if not claims:
            return Extension()
        with self._session.reporting():
            try:
                return self.renew(claims, lease)
            except Exception as error:
                if self._session.in_atomic() or not self._session.lies_in_row(error):
                    raise
                return Extension.joined([self._renew_alone(claim, lease) for claim in claims])

    @abstractmethod
    def renew(self, claims: Sequence[Claim], lease: timedelta) -> Extension:
        """Renew claims in one transaction."""

    def _renew_alone(self, claim: Claim, lease: timedelta) -> Extension:
        try:
            return self.renew([claim], lease)
        except Exception as error:
            if not self._session.lies_in_row(error):
                raise
            return Extension(skipped=(claim,))

    # End

    @abstractmethod
    def sweep(self, judge: Judge, limit: int) -> Sweep:
        """End expired leases, and queued jobs past their expiry."""

    def end_claims(self, owner: str, judge: Judge, limit: int) -> tuple[Settlement, ...]:
        """End the claims of a dead worker, whether or not their leases still run."""

        def work() -> tuple[Settlement, ...]:
            with self._session.write_transaction():
                self._obstacles.forget()
                left_out = self._obstacles.left_out
                rows = self.held_rows(owner, limit + len(left_out))
                held = self.ran_out([row for row in rows if row[0] not in left_out][:limit])
                return tuple(self.end_overdue(held, judge))

        with self._session.reporting():
            return self._session.retrying(work)

    @abstractmethod
    def held_rows(self, owner: str, limit: int) -> list[tuple[Any, ...]]:
        """Read what a worker holds, in the columns of RAN_OUT_COLUMNS, and lock it. Skip what others have locked."""

    @abstractmethod
    def expire(self, limit: int) -> list[str]:
        """End queued jobs past their expiry in one statement. Return their ids."""

    def end_overdue(self, overdue: Sequence[OverdueLease], judge: Judge) -> list[Settlement]:
        """Settle leases that nobody renews. Return the settlements that were stored."""
        ended = {one.id: judge(one) for one in overdue}
        if not ended:
            return []
        try:
            with self._session.atomic():
                self._settlements.store(list(ended.values()))
        except Exception as error:
            if not self._session.lies_in_row(error):
                raise
            done = self._obstacles.among(list(ended), lambda job_id: self._settlements.store([ended[job_id]]))
            return [ended[job_id] for job_id in done]
        return list(ended.values())

    def end_expired(self, limit: int) -> tuple[str, ...]:
        """End queued jobs past their expiry, one by one if a row makes the statement fail. Return their ids."""
        try:
            with self._session.atomic():
                return tuple(self.expire(limit))
        except Exception as error:
            if not self._session.lies_in_row(error):
                raise
        queued = in_status(self._session.alias, JobStatus.QUEUED).filter(expires_at__lte=self._session.now())
        free = queued.order_by("expires_at").select_for_update(skip_locked=True)
        ids = list(free.values_list("pk", flat=True)[:limit])
        left_out = self._obstacles.left_out
        return tuple(self._obstacles.among([one for one in ids if one not in left_out], self._expire_alone))

    def _expire_alone(self, job_id: str) -> None:
        now = self._session.now()
        self._session.rows(Job).filter(pk=job_id, status=JobStatus.QUEUED.value).update(
            status=JobStatus.FAILED.value, end_reason="expired", completed_at=now, updated_at=now
        )

    def ran_out(self, rows: Sequence[tuple[Any, ...]]) -> list[OverdueLease]:
        """Return rows of lost leases as values, with the number of other claims that the owner still holds."""
        if not rows:
            return []
        owners = sorted({row[3] for row in rows})
        with self._session.connection.cursor() as cursor:
            cursor.execute(
                "SELECT coalesce(lease_owner, ''), count(*) FROM job_queue WHERE status = 'in_progress' "
                f"AND coalesce(lease_owner, '') IN ({', '.join(['%s'] * len(owners))}) GROUP BY 1",
                owners,
            )
            held = dict(cursor.fetchall())
        return [OverdueLease(*(*row[:7], held[row[3]] - 1, row[7])) for row in rows]
