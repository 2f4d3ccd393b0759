"""The base of the backends for SQLite and Postgres, which is put together from parts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, ClassVar

from jobqueue.backends.base import Backend, Judge
from jobqueue.backends.sql.claims.crowd import Crowd
from jobqueue.backends.sql.claims.held_claims import HeldClaims
from jobqueue.backends.sql.claims.leases import StoredLeases
from jobqueue.backends.sql.claims.limited_claims import LimitedClaims
from jobqueue.backends.sql.drafts import Drafts
from jobqueue.backends.sql.obstacles import Obstacles
from jobqueue.backends.sql.ports.alerts import SqlAlerts
from jobqueue.backends.sql.ports.duties import SqlDutyRoster
from jobqueue.backends.sql.ports.errors import SqlErrorReader
from jobqueue.backends.sql.ports.gauges import SqlGauges
from jobqueue.backends.sql.ports.health import SqlHealthReader
from jobqueue.backends.sql.ports.jobs import SqlJobReader
from jobqueue.backends.sql.ports.limits import SqlLimits
from jobqueue.backends.sql.ports.metrics import SqlMetrics
from jobqueue.backends.sql.ports.operator import SqlOperator
from jobqueue.backends.sql.ports.outstanding import SqlOutstandingReader
from jobqueue.backends.sql.ports.retention import SqlRetention
from jobqueue.backends.sql.ports.schedules import SqlSchedules
from jobqueue.backends.sql.ports.turns import SqlTurns
from jobqueue.backends.sql.ports.workers import SqlWorkerRegistry
from jobqueue.backends.sql.session import Session
from jobqueue.backends.sql.settlements import Settlements
from jobqueue.backends.wake import Producer
from jobqueue.clock import Clock
from jobqueue.errors import JobQueueError, LeaseLost
from jobqueue.policy.limits.limits import LimitBook
from jobqueue.records import (
    Claim,
    ClaimRequest,
    Cycle,
    Draft,
    DraftReceipt,
    Extension,
    Followed,
    Progress,
    Settlement,
    Sweep,
)


def _kept_by(part: str, name: str) -> Any:
    """Return a property that reads and sets an attribute of a part of the backend."""
    return property(
        lambda self: getattr(getattr(self, part), name),
        lambda self, value: setattr(getattr(self, part), name, value),
    )


class SqlBackend(Backend):
    """A backend that keeps jobs in a table of the application's own database, through Django's connection.

    A subclass names its own classes for the parts in which it differs.
    """

    session_class: ClassVar[type[Session]]
    jobs_class: ClassVar[type[SqlJobReader]] = SqlJobReader
    operator_class: ClassVar[type[SqlOperator]] = SqlOperator
    metrics_class: ClassVar[type[SqlMetrics]] = SqlMetrics
    workers_class: ClassVar[type[SqlWorkerRegistry]] = SqlWorkerRegistry
    errors_class: ClassVar[type[SqlErrorReader]] = SqlErrorReader
    health_class: ClassVar[type[SqlHealthReader]] = SqlHealthReader
    retention_class: ClassVar[type[SqlRetention]]
    schedules_class: ClassVar[type[SqlSchedules]]
    drafts_class: ClassVar[type[Drafts]]
    settlements_class: ClassVar[type[Settlements]]
    leases_class: ClassVar[type[StoredLeases]]

    clock = _kept_by("session", "clock")
    patience = _kept_by("session", "patience")
    #: Chooses jobs under limits.
    limited: LimitedClaims
    owns_session = _kept_by("session", "is_own")
    second_look = _kept_by("leases", "second_look")

    def __init__(self, alias: str, clock: Clock | None = None) -> None:
        self.session = self.session_class(alias, clock)
        self.jobs = self.jobs_class(self.session)
        self.operator = self.operator_class(self.session)
        self.metrics = self.metrics_class(self.session)
        self.workers = self.workers_class(self.session)
        self.duties = SqlDutyRoster(self.session)
        self.retention = self.retention_class(self.session)
        self.errors = self.errors_class(self.session)
        self.health = self.health_class(self.session)
        self.schedules = self.schedules_class(self.session, self.jobs)
        self.gauges = SqlGauges(self.session)
        self.limits = SqlLimits(self.session)
        self.turns = SqlTurns(self.session)
        self.outstanding = SqlOutstandingReader(self.session)
        self.drafts = self.drafts_class(self.session)
        self.settlements = self.settlements_class(self.session, self.drafts)
        self.alerts = SqlAlerts(self.session, self.drafts)
        self.obstacles = Obstacles(self.session, self.jobs)
        self.leases = self.leases_class(self.session, self.settlements, self.obstacles)
        self.claims = HeldClaims(self.session)
        self._crowd = Crowd()
        self._producer = Producer()

    @property
    def alias(self) -> str:
        """The alias of the database."""
        return self.session.alias

    @property
    def left_out(self) -> Mapping[str, str]:
        return self.obstacles.left_out

    @property
    def book(self) -> LimitBook:
        return self.limited.last_book

    def any_text(self) -> AbstractContextManager[None]:
        return self.session.any_text()

    def lies_in_row(self, error: Exception) -> bool:
        return self.session.lies_in_row(error)

    # The caller's side

    def atomic(self) -> AbstractContextManager[object]:
        return self.session.atomic()

    def in_atomic(self) -> bool:
        return self.session.in_atomic()

    def now(self) -> datetime:
        return self.session.now()

    def answering_within(self, seconds: float) -> AbstractContextManager[object]:
        return self.session.answering_within(seconds)

    def on_commit(self, callback: Callable[[], object]) -> None:
        self.session.on_commit(callback)

    def enqueue(self, drafts: Sequence[Draft]) -> list[DraftReceipt]:
        with self.session.reporting():
            if len(drafts) == 1:
                return [self.session.retrying(lambda: self.drafts.admit(drafts[0]))]
            return self.session.retrying(lambda: self.drafts.admit_all(drafts)) if drafts else []

    # The worker's side

    def cycle(self, owner: str, settlements: Sequence[Settlement] = (), request: ClaimRequest | None = None) -> Cycle:
        with self.session.reporting():
            try:
                return self.turn(owner, settlements, request)
            except Exception as error:
                if request is None or self.in_atomic() or not self.lies_in_row(error):
                    raise
                settled = self.turn(owner, settlements, None) if settlements else Cycle()
                if not self.set_aside(owner, request):
                    raise
            return replace(settled, next_due=timedelta(0))

    @abstractmethod
    def turn(self, owner: str, settlements: Sequence[Settlement], request: ClaimRequest | None) -> Cycle:
        """Store settlements and claim jobs. If either fails, change nothing."""

    def set_aside(self, owner: str, request: ClaimRequest) -> int:
        """End or leave out the jobs that make a claim fail. Return how many there were."""
        return self.session.transact(lambda: self.obstacles.among_due(owner, request))

    def settle_in_transaction(self, settlement: Settlement) -> tuple[Followed, ...]:
        if not self.in_atomic():
            raise JobQueueError("settle_in_transaction() needs the transaction the handler worked in; open one first.")
        with self.session.reporting():
            settled = self.session.retrying(lambda: self.settlements.store([settlement]))
        if settled.refused:
            raise LeaseLost(settlement.id, settlement.fence)
        return settled.followed

    def extend(self, claims: Sequence[Claim], lease: timedelta) -> Extension:
        return self.leases.extend(claims, lease)

    def review(self, claims: Sequence[Claim]) -> Extension:
        return self.claims.review(claims)

    def held_by(self, owner: str) -> list[tuple[str, int]]:
        return self.claims.held_by(owner)

    def progress(self, reports: Sequence[Progress]) -> tuple[Progress, ...]:
        return self.claims.progress(reports)

    def forget_throttles(self) -> None:
        with self.session.reporting():
            self.drafts.forget_throttles()

    def sweep(self, judge: Judge, limit: int = 500) -> Sweep:
        return self.leases.sweep(judge, limit)

    def end_claims(self, owner: str, judge: Judge, limit: int = 500) -> tuple[Settlement, ...]:
        return self.leases.end_claims(owner, judge, limit)
