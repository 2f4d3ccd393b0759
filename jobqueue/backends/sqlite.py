"""SQLite: one writer at a time, so a write that reads first begins IMMEDIATE, and waits its turn in our own way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime, timedelta
from operator import itemgetter
from sqlite3 import SQLITE_ERROR, Connection
from typing import Any, TypeVar, cast

from django.db import transaction

from jobqueue.backends import sqlite_busy, sqlite_claims, sqlite_unreadable
from jobqueue.backends import sqlite_statements as statements
from jobqueue.backends.sql import SqlBackend, settlement_values
from jobqueue.backends.sqlite_wake import SqliteListener, send_wake_up
from jobqueue.clock import SYSTEM, Clock, from_text, to_text
from jobqueue.records import (
    Claim,
    ClaimRequest,
    Cycle,
    Draft,
    Expired,
    Extension,
    Filter,
    JobRecord,
    Settled,
    Settlement,
    Sweep,
)
from jobqueue.states import Move

T = TypeVar("T")
Row = tuple[Any, ...]

_AT_LEAST = timedelta(milliseconds=1)


class SqliteBackend(SqlBackend):
    """Jobs in a SQLite file. A worker's verbs go to the driver itself: the statements cost less than a cursor."""

    takes_turns = True
    second_look = timedelta(seconds=1)

    def __init__(self, alias: str, clock: Clock | None = None) -> None:
        super().__init__(alias, clock)
        self._suspects: dict[tuple[str, int, str], float] = {}

    def now(self) -> datetime:
        return (self.clock or SYSTEM).now()

    def is_missing_table(self, error: Exception) -> bool:
        return "no such table: job_queue" in str(error)

    def any_text(self) -> AbstractContextManager[None]:
        return sqlite_unreadable.read_as(self.connection, sqlite_unreadable.AS_FAR_AS_TEXT)

    def true_text(self) -> AbstractContextManager[None]:
        return sqlite_unreadable.read_as(self.connection, str)

    def lies_in_row(self, error: Exception) -> bool:
        code = getattr(error.__cause__, "sqlite_errorcode", None)
        is_plain = code == SQLITE_ERROR and not self.is_missing_table(error)  # what a trigger computes may fail so
        return super().lies_in_row(error) or is_plain or sqlite_unreadable.is_told_by(error)

    def unit(self, work: Callable[[], T]) -> T:
        return sqlite_unreadable.patiently_past(self.connection, work, self.patience, self.now)

    @contextmanager
    def write(self) -> Iterator[None]:
        with sqlite_busy.immediate(self.connection), transaction.atomic(using=self.alias):
            yield

    def atomic_attempt(self) -> AbstractContextManager[None]:
        return sqlite_busy.in_turn(self.connection)

    @contextmanager
    def _driver(self) -> Iterator[Connection]:
        connection = self.connection
        connection.validate_no_broken_transaction()  # as a cursor does: what follows would be rolled back
        connection.ensure_connection()
        with connection.wrap_database_errors:
            yield cast(Connection, connection.connection)

    def find(
        self, wanted: Filter, limit: int, after_id: str | None = None, newest_first: bool = False
    ) -> list[JobRecord]:
        found = super().find(wanted, limit, after_id, newest_first)
        return [one for one in found if after_id is None or (one.id < after_id if newest_first else one.id > after_id)]

    def find_ids(self, wanted: Filter, limit: int, after_id: str | None = None) -> list[str]:
        # An id that is not UTF-8 is read as another text, behind which it would be found again, for ever.
        return [one for one in super().find_ids(wanted, limit, after_id) if after_id is None or one > after_id]

    # Enqueueing

    def insert(self, draft: Draft) -> bool:
        values = statements.values_to_insert(draft, self.now())
        connection = self.connection
        # Somebody wants to see what goes through a cursor; or, in a test without a database, forbids it.
        if connection.execute_wrappers or connection.queries_logged or "cursor" in vars(connection):
            with connection.cursor() as cursor:
                cursor.execute(statements.INSERT, values)
                return bool(cursor.rowcount == 1)
        with self._driver() as driver:
            return driver.execute(statements.INSERT_RAW, values).rowcount == 1

    def insert_all(self, drafts: Sequence[Draft]) -> set[str]:
        now = self.now()
        rows = [statements.values_to_insert(draft, now) for draft in drafts]
        with self._driver() as driver:
            driver.execute("SAVEPOINT jobqueue_bulk")
            if driver.executemany(statements.INSERT_RAW, rows).rowcount < len(rows):
                # Something was in the way of some of them; only one at a time tells of which.
                driver.execute("ROLLBACK TO jobqueue_bulk")
                rows = [row for row in rows if driver.execute(statements.INSERT_RAW, row).rowcount == 1]
            driver.execute("RELEASE jobqueue_bulk")
        return {row[0] for row in rows}

    # The worker's turn

    def turn(self, owner: str, settlements: Sequence[Settlement], request: ClaimRequest | None) -> Cycle:
        def work() -> Cycle:
            with self.write(), self._driver() as driver:
                settled = self.settle_and_remember(settlements)
                claims, lapsed = self._claim(driver, owner, request) if request else ([], False)
            next_due = timedelta(0) if lapsed else self._next_due(request, claims)
            cycle = Cycle(settled.refused, tuple(claims), next_due, settled.followed)
            return self._crowd.told(cycle, request)

        if not settlements and not self._is_anything_due():
            return Cycle(next_due=self._next_due(request, []))  # an idle turn never asks for the write lock
        return self.unit(work)

    def settle_and_remember(self, settlements: Sequence[Settlement]) -> Settled:
        plain = all(one.move is Move.COMPLETE and not one.children and one.progress is None for one in settlements)
        if plain and self._complete_all(settlements):
            return Settled()  # nothing was refused, and there is nothing to remember
        return super().settle_and_remember(settlements)

    def settle(self, settlements: Sequence[Settlement]) -> set[tuple[str, int]]:
        now = self.now()
        done = [one for one in settlements if one.move is Move.COMPLETE]
        alone = [one for one in settlements if one.move is not Move.COMPLETE]
        if not self._complete_all(done):
            alone, done = [*done, *alone], []
        with self._driver() as driver:
            return {one.claim for one in done} | {
                one.claim for one in alone if driver.execute(*_settling(one, now)).rowcount == 1
            }

    def _complete_all(self, done: Sequence[Settlement]) -> bool:
        """Store completions all at once, or none of them: only one at a time tells which are refused."""
        if not done:
            return True
        written = to_text(self.now())
        rows = [_completion(one, written) for one in done]
        with self._driver() as driver:
            if len(rows) == 1:
                return driver.execute(statements.COMPLETE, rows[0]).rowcount == 1
            driver.execute("SAVEPOINT jobqueue_complete")
            all_held = driver.executemany(statements.COMPLETE, rows).rowcount == len(rows)
            if not all_held:
                driver.execute("ROLLBACK TO jobqueue_complete")
            driver.execute("RELEASE jobqueue_complete")
        return all_held

    def _is_anything_due(self) -> bool:
        with self._driver() as driver:
            return bool(driver.execute(statements.IS_DUE, {"now": to_text(self.now())}).fetchone()[0])

    def _claim(self, driver: Connection, owner: str, request: ClaimRequest) -> tuple[list[Claim], bool]:
        """Take the first jobs, end those of them that it may not take, and say whether there were such."""
        now = self.now()
        written = to_text(now)
        found = [(row[0], sqlite_claims.claim_of(row)) for row in self._choose(driver, owner, request, written)]
        fresh = [(rowid, claim) for rowid, claim in found if sqlite_claims.is_fresh(claim, now)]
        ends = {kind: to_text(now + request.lease_of(kind)) for kind in {claim.type for _, claim in fresh}}
        rows = [(owner, ends[claim.type], written, written, rowid) for rowid, claim in fresh]
        if driver.executemany(statements.TAKE, rows).rowcount < len(rows):
            raise ValueError("the database left a job as it was that was to be claimed")  # so does a trigger's IGNORE
        if len(fresh) < len(found):
            taken = {rowid for rowid, _ in fresh}
            driver.executemany(
                statements.LAPSE, [(written, written, rowid) for rowid, _ in found if rowid not in taken]
            )
        return [claim for _, claim in fresh], len(fresh) < len(found)

    def _choose(self, driver: Connection, owner: str, request: ClaimRequest, now: str) -> list[Row]:
        """Pick the first jobs in order that this worker may run.

        The plain range serves while nothing else stands at its head. Where something does, the claim goes group by
        group, until no group present is one to leave alone.
        """
        with self.any_text():
            pauses = set(driver.execute(statements.PAUSES).fetchall())
        wanted = {"now": now, "limit": request.limit + len(self.left_out), "owner": owner}
        if not self._crowd.is_met:
            rows = self._open(driver.execute(statements.READY, wanted), request.limit)
            if all(sqlite_claims.may_run(request, pauses, *kind) for kind in {(row[3], row[2]) for row in rows}):
                return rows
        if not self._crowd.is_known:
            self._walk(driver, request, pauses, now)
        may_be_due = [one for one in self._crowd.open_to(request) if sqlite_claims.may_run(request, pauses, *one[:2])]
        return self._open(sqlite_claims.first_of(driver, may_be_due, wanted), request.limit)

    def _walk(self, driver: Connection, request: ClaimRequest, pauses: set[tuple[str, str]], now: str) -> None:
        """Find the groups there are, which takes long where another program has made very many."""
        groups = list(sqlite_claims.groups(driver))
        heads = [head for head in groups if sqlite_claims.may_run(request, pauses, *head[0][:2])]
        heads.sort(key=sqlite_claims.in_order)
        due = [group for group, (due_at, _id) in heads if due_at <= now]
        later = [group for group, _first in sorted(heads, key=itemgetter(1)) if _first[0] > now]
        self._crowd.walked(len(groups), is_met=len(heads) < len(groups), due=due, later=later)

    def _open(self, rows: Iterable[Row], limit: int) -> list[Row]:
        """Keep the first rows that are not left out."""
        if not self.left_out:
            return list(rows)
        return [row for row in rows if row[sqlite_claims.ID] not in self.left_out][:limit]

    def _next_due(self, request: ClaimRequest | None, claims: Sequence[Claim]) -> timedelta | None:
        if request is None or len(claims) == request.limit:
            return None
        now = self.now()
        with self._driver() as driver:
            moments = [row[0] for row in driver.execute(statements.NEXT_DUE, {"now": to_text(now)})]
        # A foreign writer's moment may be coarser than ours: the text is later, the moment is not.
        return max(from_text(min(moments)) - now, _AT_LEAST) if moments else None

    # Leases

    def renew(self, claims: Sequence[Claim], lease: timedelta) -> Extension:
        def work() -> Extension:
            lost, cancelled = [], []
            with self.write(), self._driver() as driver:
                until = to_text(self.now() + lease)
                for claim in claims:
                    values = {"id": claim.id, "fence": claim.fence, "owner": claim.owner, "until": until}
                    held = driver.execute(statements.EXTEND, values).fetchall()
                    if not held:
                        lost.append(claim)
                    elif held[0][0] is not None:
                        cancelled.append(claim)
            return Extension(lost=tuple(lost), cancelled=tuple(cancelled))

        return self.unit(work)

    def sweep(self, judge: Callable[[Expired], Settlement], limit: int = 500) -> Sweep:
        def work() -> Sweep:
            with self.write(), self._driver() as driver:
                now = to_text(self.now())
                self._obstacles.forget()
                expired = self.end_expired(limit)
                rows = driver.execute(statements.RAN_OUT, (now, limit + len(self.left_out))).fetchall()
                rows = [row for row in rows if row[0] not in self.left_out]
                ended = self.settle_expired(self._seen_twice(rows), judge)
            return Sweep(tuple(ended), expired, look_again=len(ended) < len(rows))

        with self.reporting():
            return self.unit(work)

    def expire(self, limit: int) -> list[str]:
        with self._driver() as driver:
            given = {"now": to_text(self.now()), "limit": limit}
            return [row[0] for row in driver.execute(statements.EXPIRE, given)]

    def _seen_twice(self, rows: Sequence[Row]) -> list[Expired]:
        """Keep the leases that had run out at an earlier look too, with this look's write lock between the two.

        A handler that settles in its own transaction keeps the only write lock while it works. Its worker cannot extend
        meanwhile, so what a single look finds may belong to a worker that is alive and next in line for the lock.
        """
        moment = (self.clock or SYSTEM).monotonic()
        looks = {(row[0], row[2], row[-1]): row for row in rows}
        self._suspects = {look: self._suspects.get(look, moment) for look in looks}
        seen = self.second_look.total_seconds()
        return self.ran_out([row for look, row in looks.items() if moment - self._suspects[look] >= seen])

    # Wake-ups

    def wake(self) -> None:
        if self._producer.may_send():
            send_wake_up(self.connection)

    def listen(self) -> SqliteListener:
        return SqliteListener(self.alias)

    def rest(self) -> None:
        with self.reporting(), self.connection.cursor() as cursor:
            cursor.execute("PRAGMA shrink_memory")


def _completion(one: Settlement, written: str) -> Row:
    """The parameters of COMPLETE."""
    return (one.result, written, written, one.id, one.fence, one.owner)


def _settling(one: Settlement, now: datetime) -> tuple[str, Any]:
    """The statement that stores a settlement, and its parameters."""
    if one.move is Move.COMPLETE:
        return statements.COMPLETE, _completion(one, to_text(now))
    due_at = None if one.delay is None else to_text(now + one.delay)
    return statements.SETTLE, settlement_values(one) | {"now": to_text(now), "due_at": due_at}
