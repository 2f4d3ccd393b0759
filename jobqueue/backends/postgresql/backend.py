"""The backend of Postgres. Workers share the table with SKIP LOCKED, and need one round trip for a cycle."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from operator import attrgetter
from typing import Any

from django.db import OperationalError

from jobqueue.backends.postgresql import statements, values
from jobqueue.backends.postgresql.claims.leases import PostgresLeases
from jobqueue.backends.postgresql.claims.limited_claims import PostgresLimitedClaims
from jobqueue.backends.postgresql.drafts import PostgresDrafts
from jobqueue.backends.postgresql.floors import statements as floor_statements
from jobqueue.backends.postgresql.floors.floor import LAG, Position
from jobqueue.backends.postgresql.floors.looks import PRIORITIES, Looks, left_behind, range_values
from jobqueue.backends.postgresql.ports.metrics import PostgresMetrics
from jobqueue.backends.postgresql.ports.retention import PostgresRetention
from jobqueue.backends.postgresql.ports.schedules import PostgresSchedules
from jobqueue.backends.postgresql.ports.setup import PostgresSetupReader
from jobqueue.backends.postgresql.ports.storage import PostgresStorageReader
from jobqueue.backends.postgresql.session import PostgresSession, is_locked
from jobqueue.backends.postgresql.settlements import PostgresSettlements
from jobqueue.backends.postgresql.wake import NOTIFY, NOTIFY_OF_LATE, PostgresListener, channel_of
from jobqueue.backends.sql.backend import SqlBackend
from jobqueue.backends.sql.claims.crowd import WALKED_AT_ONCE, Group
from jobqueue.backends.sql.claims.limited_claims import without_limited
from jobqueue.backends.sql.ports.lanes import SqlLanes
from jobqueue.backends.sql.settlements import refused
from jobqueue.clock import SYSTEM, Clock
from jobqueue.durations import from_seconds
from jobqueue.models.fields import as_utc
from jobqueue.policy.limits.limits import Chosen, LimitBook
from jobqueue.records import Claim, ClaimRequest, Cycle, Settled, Settlement

#: Seconds for which turns skip locked rows after a turn that met a lock. Postponed settlements are offered again within
#: this time, so they don't wait for locks either.
_WARY_FOR = 2.0
_NOTHING, _NO_LIMITS = Chosen(), LimitBook()


class PostgresBackend(SqlBackend):
    """Jobs in a Postgres table."""

    session_class = PostgresSession
    metrics_class = PostgresMetrics
    retention_class = PostgresRetention
    drafts_class = PostgresDrafts
    schedules_class = PostgresSchedules
    settlements_class = PostgresSettlements
    leases_class = PostgresLeases
    session: PostgresSession
    leases: PostgresLeases
    limited: PostgresLimitedClaims
    metrics: PostgresMetrics

    #: Turns skip locked rows until this moment.
    _wary_until = 0.0

    def __init__(self, alias: str, clock: Clock | None = None) -> None:
        super().__init__(alias, clock)
        self._looks = Looks(self.session, PRIORITIES)
        self.limited = PostgresLimitedClaims(self.limits, self.session)
        self.lanes = SqlLanes(self.session, self.limited.lanes)
        self.setup = PostgresSetupReader(self.session)
        self.storage = PostgresStorageReader(self.session)
        self.metrics.queued, self.metrics.leased = self._looks.floors, self.leases.floors

    def bound_silence(self, seconds: float) -> None:
        self.session.bound_silence(seconds)

    # The worker's turn

    def turn(self, owner: str, settlements: Sequence[Settlement], request: ClaimRequest | None) -> Cycle:
        if request:
            self._look()
        return self._turn(owner, settlements, request)

    def _look(self) -> None:
        """Look behind the floors, if it is time."""
        self.leases.look()
        if not self._crowd.is_met:  # groups have no floors
            given = {"left_out": list(self.left_out)} if self.left_out else {}
            self._looks.look(floor_statements.look_statement(sparing=bool(given)), given)

    def _turn(self, owner: str, settlements: Sequence[Settlement], request: ClaimRequest | None) -> Cycle:
        if not settlements or self.in_atomic():
            return self._settle_and_claim(owner, settlements, request)
        if self._wary_until <= (self.clock or SYSTEM).monotonic():
            try:
                return self._settle_and_claim(owner, settlements, request)
            except OperationalError as error:
                if not is_locked(error):
                    self._be_wary()  # the server may have waited for a lock, if no lock timeout was set
                    raise
        return self._go_past_locks(owner, settlements, request)

    def _settle_and_claim(self, owner: str, settlements: Sequence[Settlement], request: ClaimRequest | None) -> Cycle:
        if request and (book := self.limited.book(request)):
            return self._claim_under_limits(owner, settlements, request, book)
        plain = all(one.is_plain_completion for one in settlements)
        if request and plain:
            return self._complete_and_claim(owner, settlements, request, _NOTHING, _NO_LIMITS)
        with self.session.own_transaction():  # history, follow-up jobs and progress need further statements
            settled = self.settlements.store(settlements)
            claimed = self._complete_and_claim(owner, (), request, _NOTHING, _NO_LIMITS) if request else Cycle()
            return replace(claimed, refused=settled.refused, followed=settled.followed)

    def _claim_under_limits(
        self, owner: str, settlements: Sequence[Settlement], request: ClaimRequest, book: LimitBook
    ) -> Cycle:
        """Settle, choose jobs under limits, and claim them together with others, in one transaction.

        Lanes know which running jobs are about to be completed. So if there is nothing but lanes, one statement
        completes and claims, as it does without limits.
        """
        at_once = book.has_only_lanes and all(one.is_plain_completion for one in settlements)
        completions = settlements if at_once else ()
        with self.session.own_transaction():
            settled = Settled() if at_once else self.settlements.store(settlements)
            groups = self.limited.groups(request, book)
            chosen = self.limited.choose(groups, request, book, self.left_out, completions)
            claimed = self._complete_and_claim(owner, completions, request, chosen, book)
            self.limited.record(chosen, claimed.claims, book)
        told = self.limited.told(claimed, chosen, request)
        return told if at_once else replace(told, refused=settled.refused, followed=settled.followed)

    def _go_past_locks(self, owner: str, settlements: Sequence[Settlement], request: ClaimRequest | None) -> Cycle:
        """Settle and claim as in other turns, but postpone the settlements whose rows are locked."""
        with self.session.own_transaction():
            ids = {one.id for one in settlements}
            locked = ids - {row[0] for row in self.session.run(statements.LOCK_FREE, {"ids": list(ids)})}
            if locked:
                locked = {row[0] for row in self.session.run(statements.THERE, {"ids": list(locked)})}
            cycle = self._settle_and_claim(owner, [one for one in settlements if one.id not in locked], request)
        if locked:
            self._be_wary()
        return replace(cycle, postponed=tuple(one for one in settlements if one.id in locked))

    def _be_wary(self) -> None:
        self._wary_until = (self.clock or SYSTEM).monotonic() + _WARY_FOR

    def _complete_and_claim(
        self, owner: str, completions: Sequence[Settlement], request: ClaimRequest, chosen: Chosen, book: LimitBook
    ) -> Cycle:
        """Complete and claim jobs in one statement, of those under limits only the chosen ones.

        If the claim finds a crowd, the next turn claims by groups.
        """
        by_group = self._crowd.is_met or bool(chosen.jobs)
        others = without_limited(request, book) if book else request
        if by_group and self._crowd.is_large and not self._crowd.is_known:
            self._walk(others, book)
        known = self._crowd.is_known
        given = self._given(others, chosen, book) | {"owner": owner, "completions": values.completions(completions)}
        if has_floors := self._looks.floors.are_up and not by_group:
            given |= range_values(self._looks.floors.ranges())
        began = SYSTEM.monotonic()
        rows = self.session.run_cycle(
            given,
            completing=bool(completions),
            by_group=by_group,
            known=known,
            sparing=bool(self.left_out),
            floors=has_floors,
            unlimited=bool(book.queue_patterns),
            chosen=bool(chosen.jobs),
            placed=bool(chosen.places),
        )
        claims = self._claims(rows, chosen)
        blocked = next(row for row in rows if row[0] == "blocked")
        if not known:
            self._crowd.met(blocked[statements.GROUPS] if by_group else 0, is_met=bool(blocked[statements.COUNT]))
        accepted = {(row[1], row[statements.COUNT]) for row in rows if row[0] == "settled"}
        lapsed = sum(row[0] == "lapsed" for row in rows)
        if len(claims) < request.limit and (lapsed or (self._crowd.is_met and not by_group)):
            next_due: timedelta | None = timedelta(0)
        else:
            next_due = next(from_seconds(row[statements.SECONDS]) for row in rows if row[0] == "next due")
        if blocked[statements.CHOSEN] > len(claims) + lapsed:  # a trigger may skip an update silently
            self.set_aside(owner, request)
        elif not (by_group or lapsed or self._crowd.is_met) and self._looks.floors.are_wanted:
            now = Position(as_utc(blocked[statements.SCHEDULED_AT], self.session.connection))
            self._looks.floors.reached(began, left_behind(claims, now, is_full=len(claims) == request.limit))
        cycle = Cycle(refused(completions, accepted), tuple(claims), next_due)
        return self._crowd.told(self._looks.told(cycle), request)

    def _given(self, request: ClaimRequest, chosen: Chosen, book: LimitBook) -> dict[str, Any]:
        """Return the parameters of a claim."""
        given = values.of_request(request)
        if self._crowd.is_known:
            given["groups"] = json.dumps([group._asdict() for group in self._crowd.open_to(request)])
        if self.left_out:
            given["left_out"] = list(self.left_out)
        if chosen.jobs:
            given["chosen"] = [one.id for one in chosen.jobs]
        if chosen.places:
            given["places"] = json.dumps({job_id: place.id for job_id, place in chosen.places.items()})
        if book.queue_patterns:
            given["limited_queues"] = values.like(book.queue_patterns)
        return given

    def _walk(self, request: ClaimRequest, book: LimitBook) -> None:
        """Find all groups. This takes long if another program has made very many."""
        given = {"most": WALKED_AT_ONCE + 1, "limited_queues": values.like(book.queue_patterns)}
        statement = statements.WALK.replace("@unlimited", statements.UNLIMITED if book.queue_patterns else "")
        rows = self.session.run(statement, given | values.of_request(request))
        count, wanted = rows[0][:2]
        due, later = ([Group(*row[3:]) for row in rows if row[2] is is_due] for is_due in (True, False))
        self._crowd.walked(count, is_met=wanted < count, due=due, later=later)

    def _claims(self, rows: Sequence[tuple[Any, ...]], chosen: Chosen) -> list[Claim]:
        """Return the claims in their order."""
        claims = [self._claim(row) for row in rows if row[0] == "taken"]
        claims.sort(key=partial(_place, chosen) if chosen.places else attrgetter("priority", "scheduled_at", "id"))
        return claims

    def _claim(self, row: tuple[Any, ...]) -> Claim:
        scheduled, created, expires, timeout, crashes = row[statements.SCHEDULED_AT :]
        moments = [moment and as_utc(moment, self.session.connection) for moment in (scheduled, created, expires)]
        return Claim._make((*row[1 : statements.SCHEDULED_AT], *moments, from_seconds(timeout), crashes))

    # Wake-ups

    def wake(self, age: float = 0.0) -> None:
        late = age if age > LAG / 2 else 0.0
        if self._producer.may_send(late):
            # This runs after the commit: inside the transaction, NOTIFY would take a global lock.
            with self.session.reporting():
                channel = channel_of(self.session.connection)
                self.session.run(*((NOTIFY_OF_LATE, [channel, late]) if late else (NOTIFY, [channel])))

    def listen(self) -> PostgresListener:
        return PostgresListener(self.alias, self.session.listener_silence, self._looks.floors.told_of)


def _place(chosen: Chosen, claim: Claim) -> tuple[int, float, str]:
    """Return the place of a claim in the order of claims. Some jobs take the places of others."""
    other = chosen.places.get(claim.id)
    if other is not None:
        return (other.priority, other.scheduled_at, other.id)
    return (claim.priority, claim.scheduled_at.timestamp(), claim.id)
