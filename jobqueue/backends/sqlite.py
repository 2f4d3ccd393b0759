"""SQLite: one writer at a time, so a write that reads first begins IMMEDIATE, and waits its turn in our own way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime, timedelta
from operator import itemgetter
from sqlite3 import Connection
from typing import Any, TypeVar, cast

from django.db import transaction

from jobqueue.backends import sqlite_busy, sqlite_unreadable
from jobqueue.backends import sqlite_statements as statements
from jobqueue.backends.sql import SqlBackend, settlement_values
from jobqueue.backends.sqlite_wake import SqliteListener, send_wake_up
from jobqueue.clock import SYSTEM, Clock, from_text, to_text
from jobqueue.records import Claim, ClaimRequest, Cycle, Draft, Expired, Extension, Settled, Settlement, Sweep
from jobqueue.states import Move

T = TypeVar("T")
Row = tuple[Any, ...]

_AT_LEAST = timedelta(milliseconds=1)

#: Where a row has them: the row id comes first, then the columns of a claim.
_ID = 1
_SCHEDULED_AT = 1 + Claim._fields.index("scheduled_at")


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

    def cycle(self, owner: str, settlements: Sequence[Settlement] = (), request: ClaimRequest | None = None) -> Cycle:
        def work() -> Cycle:
            with self.write(), self._driver() as driver:
                settled = self.settle_and_remember(settlements)
                claims, lapsed = self._claim(driver, owner, request) if request else ([], False)
            next_due = timedelta(0) if lapsed else self._next_due(request, claims)
            return Cycle(settled.refused, tuple(claims), next_due, settled.followed)

        with self.reporting():
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
        """Take the first jobs, end those of them that came too late, and say whether there were such."""
        now = self.now()
        written = to_text(now)
        found = [(row[0], _claim(row)) for row in self._choose(driver, owner, request, written)]
        fresh = [(rowid, claim) for rowid, claim in found if claim.expires_at is None or claim.expires_at > now]
        ends = {kind: to_text(now + request.lease_of(kind)) for kind in {claim.type for _, claim in fresh}}
        driver.executemany(
            statements.TAKE, [(owner, ends[claim.type], written, written, rowid) for rowid, claim in fresh]
        )
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
        pauses = set(driver.execute(statements.PAUSES).fetchall())
        wanted = {"now": now, "limit": request.limit, "owner": owner}
        if not self._crowded:
            rows = driver.execute(statements.READY, wanted).fetchall()
            if all(_may_run(request, pauses, *kind) for kind in {(row[3], row[2]) for row in rows}):
                return rows
        groups = list(_groups(driver))
        open_to_us = [group for group in groups if _may_run(request, pauses, group[0], group[1])]
        self._crowded = len(open_to_us) < len(groups)
        return _first_of(driver, [group[:3] for group in open_to_us if group[3] <= now], wanted)

    def _next_due(self, request: ClaimRequest | None, claims: Sequence[Claim]) -> timedelta | None:
        if request is None or len(claims) == request.limit:
            return None
        now = self.now()
        with self._driver() as driver:
            moments = [row[0] for row in driver.execute(statements.NEXT_DUE, {"now": to_text(now)})]
        # A foreign writer's moment may be coarser than ours: the text is later, the moment is not.
        return max(from_text(min(moments)) - now, _AT_LEAST) if moments else None

    # Leases

    def extend(self, claims: Sequence[Claim], lease: timedelta) -> Extension:
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

        with self.reporting():
            return self.unit(work) if claims else Extension()

    def sweep(self, judge: Callable[[Expired], Settlement], limit: int = 500) -> Sweep:
        def work() -> Sweep:
            with self.write(), self._driver() as driver:
                now = to_text(self.now())
                expired = [row[0] for row in driver.execute(statements.EXPIRE, {"now": now, "limit": limit})]
                rows = driver.execute(statements.RAN_OUT, (now, limit)).fetchall()
                ended = [judge(one) for one in self._seen_twice(rows)]
                self.settle_and_remember(ended)
            return Sweep(tuple(ended), tuple(expired), look_again=len(ended) < len(rows))

        with self.reporting():
            return self.unit(work)

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


def _may_run(request: ClaimRequest, pauses: set[tuple[str, str]], queue: str, job_type: str) -> bool:
    wanted = job_type in request.types and (request.queues is None or queue in request.queues)
    return wanted and not (pauses and (("queue", queue) in pauses or ("type", job_type) in pauses))


def _groups(driver: Connection) -> Iterator[tuple[str, str, int, str]]:
    """Yield each queue, type and priority that has queued jobs, with the moment its first one is due."""
    last: tuple[str, str, int] = ("", "", 0)
    while found := driver.execute(statements.NEXT_GROUP, last).fetchone():
        yield found
        last = found[:3]


def _first_of(driver: Connection, groups: Iterable[tuple[str, str, int]], wanted: dict[str, Any]) -> list[Row]:
    """Pick the first jobs in order from some groups, best priority first; stop reading once there are enough."""
    chosen: list[Row] = []
    by_priority: dict[int, list[tuple[str, str, int]]] = {}
    for group in groups:
        by_priority.setdefault(group[2], []).append(group)
    for priority in sorted(by_priority):
        if len(chosen) >= wanted["limit"]:
            break
        arms = (
            driver.execute(statements.READY_OF, wanted | {"queue": queue, "type": kind, "priority": priority})
            for queue, kind, _ in by_priority[priority]
        )
        level = [row for arm in arms for row in arm]
        chosen += sorted(level, key=itemgetter(_SCHEDULED_AT, _ID))
    return chosen[: wanted["limit"]]


def _claim(row: Row) -> Claim:
    """Make a claim of a row id and the claim's columns."""
    scheduled, created, expires, timeout, crashes = row[_SCHEDULED_AT:]
    return Claim._make(
        (
            *row[_ID:_SCHEDULED_AT],
            from_text(scheduled),
            from_text(created),
            from_text(expires) if expires else None,
            timedelta(seconds=timeout) if timeout else None,
            crashes,
        )
    )
