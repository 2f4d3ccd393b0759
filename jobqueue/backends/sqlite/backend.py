"""The backend of SQLite. Only one transaction can write at a time, so writing transactions begin IMMEDIATE."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from operator import itemgetter
from sqlite3 import Connection
from typing import Any

from jobqueue.backends.base import Judge
from jobqueue.backends.sql.backend import SqlBackend
from jobqueue.backends.sql.claims.crowd import Group
from jobqueue.backends.sql.ports.lanes import SqlLanes
from jobqueue.backends.sqlite import lock, statements
from jobqueue.backends.sqlite.claims import claim_rows
from jobqueue.backends.sqlite.claims.leases import SqliteLeases
from jobqueue.backends.sqlite.claims.limited_claims import SqliteLimitedClaims
from jobqueue.backends.sqlite.drafts import SqliteDrafts
from jobqueue.backends.sqlite.ports import storage
from jobqueue.backends.sqlite.ports.jobs import SqliteJobReader
from jobqueue.backends.sqlite.ports.retention import SqliteRetention
from jobqueue.backends.sqlite.ports.schedules import SqliteSchedules
from jobqueue.backends.sqlite.ports.setup import SqliteSetupReader
from jobqueue.backends.sqlite.session import SqliteSession
from jobqueue.backends.sqlite.settlements import SqliteSettlements
from jobqueue.backends.sqlite.wake import SqliteListener, send_wake_up
from jobqueue.clock import Clock, from_text, to_text
from jobqueue.policy.limits.limits import Chosen, LimitBook
from jobqueue.records import Claim, ClaimRequest, Cycle, Settlement, Sweep

Row = tuple[Any, ...]

_AT_LEAST = timedelta(milliseconds=1)


class SqliteBackend(SqlBackend):
    """Jobs in a SQLite file. Workers use the driver directly, because Django's cursor costs more than a statement."""

    session_class = SqliteSession
    jobs_class = SqliteJobReader
    retention_class = SqliteRetention
    drafts_class = SqliteDrafts
    schedules_class = SqliteSchedules
    settlements_class = SqliteSettlements
    leases_class = SqliteLeases
    takes_turns = True
    session: SqliteSession

    def __init__(self, alias: str, clock: Clock | None = None) -> None:
        super().__init__(alias, clock)
        self.storage = storage.SqliteStorageReader(self.session)
        self.setup = SqliteSetupReader(self.session)
        self.limited = SqliteLimitedClaims(self.limits, self.session)
        self.lanes = SqlLanes(self.session, self.limited.lanes)
        #: The groups under limits with due jobs that the last walk found, in order.
        self._limited: Sequence[Group] = ()

    def atomic_attempt(self) -> AbstractContextManager[None]:
        return lock.in_turn(self.session.connection)

    # The worker's turn

    def turn(self, owner: str, settlements: Sequence[Settlement], request: ClaimRequest | None) -> Cycle:
        def work() -> Cycle:
            with self.session.write_transaction(), self.session.driver() as driver:
                settled = self.settlements.store(settlements)
                claimed = self._claim(driver, owner, request) if request else Cycle()
            if not (settled.refused or settled.followed):  # nearly always, and a copy costs as much as ten calls
                return claimed
            return replace(claimed, refused=settled.refused, followed=settled.followed)

        if not settlements and not self._is_anything_due():
            return Cycle(next_due=self._next_due(request, []))  # without taking the write lock
        return self.session.retrying(work)

    def _is_anything_due(self) -> bool:
        with self.session.driver() as driver:
            return bool(driver.execute(statements.IS_DUE, {"now": to_text(self.now())}).fetchone()[0])

    def _claim(self, driver: Connection, owner: str, request: ClaimRequest) -> Cycle:
        book, now = self.limited.book(request), self.now()
        rows, chosen = self._choose(driver, owner, request, book, to_text(now))
        # Jobs start after the starts of others were counted. Otherwise a window could have more of them than its rate.
        # Where the clock goes back meanwhile, none starts before it is due.
        claims, lapsed = self._take(driver, owner, request, rows, max(now, self.now()) if book else now)
        self.limited.record(chosen, claims, book)
        cycle = Cycle((), tuple(claims), timedelta(0) if lapsed else self._next_due(request, claims))
        return self._crowd.told(self.limited.told(cycle, chosen, request), request)

    def _take(
        self, driver: Connection, owner: str, request: ClaimRequest, chosen: Sequence[Row], now: datetime
    ) -> tuple[list[Claim], bool]:
        """Claim jobs, except expired ones, which are ended. Return the claims, and whether any was ended."""
        written = to_text(now)
        found = [(row[0], claim_rows.claim_of(row)) for row in chosen]
        fresh = [(rowid, claim) for rowid, claim in found if claim_rows.is_fresh(claim, now)]
        ends = {kind: to_text(now + request.lease_of(kind)) for kind in {claim.type for _, claim in fresh}}
        rows = [(owner, ends[claim.type], written, written, rowid) for rowid, claim in fresh]
        if driver.executemany(statements.TAKE, rows).rowcount < len(rows):
            raise ValueError("the database left a job as it was that was to be claimed")  # e.g. RAISE(IGNORE)
        if len(fresh) < len(found):
            taken = {rowid for rowid, _ in fresh}
            driver.executemany(
                statements.LAPSE, [(written, written, rowid) for rowid, _ in found if rowid not in taken]
            )
        return [claim for _, claim in fresh], len(fresh) < len(found)

    def _choose(
        self, driver: Connection, owner: str, request: ClaimRequest, book: LimitBook, now: str
    ) -> tuple[list[Row], Chosen]:
        """Return the first jobs, in the order of claims, that this worker may run and that their limits admit.

        A plain range is enough as long as this worker may run all jobs at its start. Otherwise the claim goes group by
        group, until the worker may run the jobs of all groups.
        """
        with self.session.any_text():
            pauses = set(driver.execute(statements.PAUSES).fetchall())
        may_run = partial(claim_rows.may_run, request, pauses)
        wanted = {"now": now, "limit": request.limit + len(self.left_out), "owner": owner}
        if not self._crowd.is_met:
            rows = self._open(driver.execute(statements.READY, wanted), request.limit)
            kinds = {(row[3], row[2]) for row in rows}
            if all(may_run(*kind) and not (book and book.gates(*kind)) for kind in kinds):
                return rows, Chosen()
        if not self._crowd.is_known:
            self._walk(driver, may_run, book, now)
        may_be_due = [one for one in self._crowd.open_to(request) if may_run(*one[:2])]
        if not book:
            return self._open(claim_rows.first_of(driver, may_be_due, wanted), request.limit), Chosen()
        free = [one for one in may_be_due if not book.gates(*one[:2])]
        rows = self._open(claim_rows.first_of(driver, free, wanted), request.limit)
        limited = [one for one in self._limited if may_run(*one[:2])]
        chosen = self.limited.choose(limited, request, book, self.left_out)
        rows += claim_rows.rows_of(driver, [one.id for one in chosen.jobs], owner)
        return sorted(rows, key=partial(claim_rows.place_of, chosen.places))[: request.limit], chosen

    def _walk(self, driver: Connection, may_run: Callable[[str, str], bool], book: LimitBook, now: str) -> None:
        """Find all groups. This takes long if another program has made very many."""
        groups = list(claim_rows.groups(driver))
        heads = sorted((head for head in groups if may_run(*head[0][:2])), key=claim_rows.in_order)
        free = [head for head in heads if not (book and book.gates(*head[0][:2]))]
        due = [group for group, (due_at, _id) in free if due_at <= now]
        later = [group for group, _first in sorted(free, key=itemgetter(1)) if _first[0] > now]
        self._crowd.walked(len(groups), is_met=len(free) < len(groups), due=due, later=later)
        self._limited = [group for group, (due_at, _id) in heads if due_at <= now and book and book.gates(*group[:2])]

    def _open(self, rows: Iterable[Row], limit: int) -> list[Row]:
        """Return the first rows whose jobs are not left out."""
        if not self.left_out:
            return list(rows)
        return [row for row in rows if row[claim_rows.ID] not in self.left_out][:limit]

    def _next_due(self, request: ClaimRequest | None, claims: Sequence[Claim]) -> timedelta | None:
        if request is None or len(claims) == request.limit:
            return None
        now = self.now()
        with self.session.driver() as driver:
            moments = [row[0] for row in driver.execute(statements.NEXT_DUE, {"now": to_text(now)})]
        # If another program wrote a time with fewer digits, its text may compare as later although the time is not.
        return max(from_text(min(moments)) - now, _AT_LEAST) if moments else None

    def sweep(self, judge: Judge, limit: int = 500) -> Sweep:
        storage.bound_log(self.session)
        return super().sweep(judge, limit)

    # Wake-ups

    def wake(self, age: float = 0.0) -> None:
        if self._producer.may_send():
            send_wake_up(self.session.connection)

    def listen(self) -> SqliteListener:
        return SqliteListener(self.alias)

    def rest(self) -> None:
        with self.session.reporting(), self.session.connection.cursor() as cursor:
            cursor.execute("PRAGMA shrink_memory")
