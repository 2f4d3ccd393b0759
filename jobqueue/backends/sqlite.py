"""SQLite: one writer at a time, so a write that reads first begins IMMEDIATE, and waits its turn in our own way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from sqlite3 import Connection
from typing import Any, TypeVar, cast

from django.db import transaction

from jobqueue.backends import sqlite_busy
from jobqueue.backends.sql import CLAIM_COLUMNS, HELD, INSERT_COLUMNS, SETTLE, SqlBackend, ran_out, settlement_values
from jobqueue.backends.sqlite_wake import SqliteListener, send_wake_up
from jobqueue.backends.wake import Producer
from jobqueue.clock import SYSTEM, Clock, from_text, to_text
from jobqueue.records import Claim, ClaimRequest, Cycle, Draft, Expired, Extension, Settlement, Sweep
from jobqueue.states import Move

T = TypeVar("T")
Row = tuple[Any, ...]

_INSERT = f"INSERT INTO job_queue ({INSERT_COLUMNS}) VALUES ({', '.join(['%s'] * 16)}) ON CONFLICT DO NOTHING"
_INSERT_RAW = _INSERT.replace("%s", "?")

# What `sql.py` reads from a joined value `v` is a named parameter here.
_HELD = HELD.replace("v.", ":")
_COMPLETE = f"""
UPDATE job_queue AS j SET status = 'completed', result = :result, completed_at = :now, updated_at = :now,
       lease_owner = NULL, lease_until = NULL WHERE {_HELD}
"""
_SETTLE = f"UPDATE job_queue AS j SET {SETTLE.replace('v.', ':')} WHERE {_HELD}"
_EXTEND = f"UPDATE job_queue AS j SET lease_until = :until WHERE {_HELD} RETURNING cancel_requested_at"
_TAKE = """
UPDATE job_queue SET status = 'in_progress', lease_owner = ?, lease_until = ?, started_at = ?, updated_at = ?,
       attempts = attempts + 1, fence = fence + 1, cancel_requested_at = NULL, end_reason = NULL
 WHERE rowid = ?
"""

# One arm per priority keeps each arm an index range over job_queue_ready (priority, scheduled_at, id); a single range
# would walk every future job of a better priority. SQLite merges the arms in order and stops at the limit.
_ARM = (
    f"SELECT rowid, {CLAIM_COLUMNS} FROM job_queue "
    "WHERE status = 'queued' AND priority > 0 AND priority = {priority} AND scheduled_at <= :now"
)
_READY = (
    " UNION ALL ".join(_ARM.format(priority=priority) for priority in range(1, 11))
    + " ORDER BY priority, scheduled_at, id LIMIT :limit"
)
# The same for one queue, type and priority, over job_queue_ready_type.
_READY_OF = (
    f"SELECT rowid, {CLAIM_COLUMNS} FROM job_queue WHERE status = 'queued' AND queue = ? AND type = ? AND priority = ? "
    "AND scheduled_at <= ? ORDER BY scheduled_at, id LIMIT ?"
)
# A skip-scan over job_queue_ready_type: the first job of the next queue, type and priority, whatever lies between.
_NEXT_GROUP = (
    "SELECT queue, type, priority, scheduled_at FROM job_queue WHERE status = 'queued' "
    "AND (queue, type, priority) > (?, ?, ?) ORDER BY queue, type, priority, scheduled_at, id LIMIT 1"
)
_NEXT_DUE = " UNION ALL ".join(
    "SELECT * FROM (SELECT scheduled_at FROM job_queue WHERE status = 'queued' AND priority > 0 "
    f"AND priority = {priority} AND scheduled_at > :now ORDER BY scheduled_at LIMIT 1)"
    for priority in range(1, 11)
)
_PAUSES = "SELECT scope, name FROM job_queue_pause"
# Over job_queue_leased (lease_until).
_RAN_OUT = (
    "SELECT id, type, fence, coalesce(lease_owner, ''), attempts, max_retries, crash_count, lease_until FROM job_queue "
    "WHERE status = 'in_progress' AND lease_until < ? ORDER BY lease_until, id LIMIT ?"
)
# Over job_queue_expiring (expires_at).
_EXPIRE = """
UPDATE job_queue SET status = 'failed', end_reason = 'expired', completed_at = :now, updated_at = :now
 WHERE rowid IN (SELECT rowid FROM job_queue WHERE status = 'queued' AND expires_at IS NOT NULL AND expires_at <= :now
                  ORDER BY expires_at LIMIT :limit)
RETURNING id
"""


class SqliteBackend(SqlBackend):
    """Jobs in a SQLite file. A worker's verbs go to the driver itself: the statements cost less than a cursor."""

    second_look = timedelta(seconds=1)

    def __init__(self, alias: str, clock: Clock | None = None) -> None:
        super().__init__(alias, clock)
        self._producer = Producer()
        self._crowded = False
        self._suspects: dict[tuple[str, int, str], float] = {}

    def now(self) -> datetime:
        return (self.clock or SYSTEM).now()

    def is_missing_table(self, error: Exception) -> bool:
        return "no such table: job_queue" in str(error)

    def unit(self, work: Callable[[], T]) -> T:
        return sqlite_busy.patiently(self.connection, work)

    @contextmanager
    def write(self) -> Iterator[None]:
        with sqlite_busy.immediate(self.connection), transaction.atomic(using=self.alias):
            yield

    @contextmanager
    def _driver(self) -> Iterator[Connection]:
        self.connection.ensure_connection()
        with self.connection.wrap_database_errors:
            yield cast(Connection, self.connection.connection)

    # Enqueueing

    def insert(self, draft: Draft) -> bool:
        with self.connection.cursor() as cursor:
            cursor.execute(f"{_INSERT} RETURNING id", _values(draft, self.now()))
            return cursor.fetchone() is not None

    def insert_all(self, drafts: Sequence[Draft]) -> set[str]:
        now = self.now()
        with self._driver() as driver:
            return {draft.id for draft in drafts if driver.execute(_INSERT_RAW, _values(draft, now)).rowcount == 1}

    # The worker's turn

    def cycle(self, owner: str, settlements: Sequence[Settlement] = (), request: ClaimRequest | None = None) -> Cycle:
        def work() -> Cycle:
            with self.write(), self._driver() as driver:
                refused = self.settle_and_remember(settlements)
                claims = self._claim(driver, owner, request) if request else []
            return Cycle(refused, tuple(claims), self._next_due(request, claims))

        with self.reporting():
            if not settlements and not self._is_anything_due():
                return Cycle(next_due=self._next_due(request, []))  # an idle turn never asks for the write lock
            return self.unit(work)

    def settle(self, settlements: Sequence[Settlement]) -> set[tuple[str, int]]:
        now = self.now()
        written = to_text(now)
        accepted = set()
        with self._driver() as driver:
            for one in settlements:
                if one.move is Move.COMPLETE:
                    values = {
                        "id": one.id,
                        "fence": one.fence,
                        "owner": one.owner,
                        "result": one.result,
                        "now": written,
                    }
                    changed = driver.execute(_COMPLETE, values)
                else:
                    due_at = None if one.delay is None else to_text(now + one.delay)
                    changed = driver.execute(_SETTLE, settlement_values(one) | {"now": written, "due_at": due_at})
                if changed.rowcount == 1:
                    accepted.add(one.claim)
        return accepted

    def _is_anything_due(self) -> bool:
        with self._driver() as driver:
            return driver.execute(_READY, {"now": to_text(self.now()), "limit": 1}).fetchone() is not None

    def _claim(self, driver: Connection, owner: str, request: ClaimRequest) -> list[Claim]:
        now = self.now()
        written = to_text(now)
        rows = self._choose(driver, request, written)
        driver.executemany(
            _TAKE, [(owner, to_text(now + request.lease_of(row[2])), written, written, row[0]) for row in rows]
        )
        return [_claim(row, owner) for row in rows]

    def _choose(self, driver: Connection, request: ClaimRequest, now: str) -> list[Row]:
        """Pick the first jobs in order that this worker may run.

        The plain range serves while nothing else stands at its head. Where something does, the claim goes group by
        group, until no group present is one to leave alone.
        """
        pauses = set(driver.execute(_PAUSES).fetchall())
        if not self._crowded:
            rows = driver.execute(_READY, {"now": now, "limit": request.limit}).fetchall()
            if all(_may_run(request, pauses, row[3], row[2]) and _is_fresh(row, now) for row in rows):
                return rows
        groups = list(_groups(driver))
        wanted = [group for group in groups if _may_run(request, pauses, group[0], group[1])]
        self._crowded = len(wanted) < len(groups)
        return _first_of(driver, [group[:3] for group in wanted if group[3] <= now], now, request.limit)

    def _next_due(self, request: ClaimRequest | None, claims: Sequence[Claim]) -> timedelta | None:
        if request is None or len(claims) == request.limit:
            return None
        now = self.now()
        with self._driver() as driver:
            moments = [row[0] for row in driver.execute(_NEXT_DUE, {"now": to_text(now)})]
        return from_text(min(moments)) - now if moments else None

    # Leases

    def extend(self, claims: Sequence[Claim], lease: timedelta) -> Extension:
        def work() -> Extension:
            lost, cancelled = [], []
            with self.write(), self._driver() as driver:
                until = to_text(self.now() + lease)
                for claim in claims:
                    values = {"id": claim.id, "fence": claim.fence, "owner": claim.owner, "until": until}
                    held = driver.execute(_EXTEND, values).fetchall()
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
                expired = [row[0] for row in driver.execute(_EXPIRE, {"now": now, "limit": limit})]
                rows = driver.execute(_RAN_OUT, (now, limit)).fetchall()
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
        looks = {(row[0], row[2], row[7]): row for row in rows}
        self._suspects = {look: self._suspects.get(look, moment) for look in looks}
        return ran_out(
            [row for look, row in looks.items() if moment - self._suspects[look] >= self.second_look.total_seconds()]
        )

    # Wake-ups

    def wake(self) -> None:
        if self._producer.may_send():
            send_wake_up(self.connection)

    def listen(self) -> SqliteListener:
        return SqliteListener(self.alias)


def _values(draft: Draft, now: datetime) -> Row:
    """The values of INSERT_COLUMNS."""
    written = to_text(now)
    due_at = (
        to_text(draft.scheduled_at) if draft.scheduled_at else to_text(now + draft.delay) if draft.delay else written
    )
    return (
        draft.id,
        draft.type,
        draft.queue,
        draft.priority,
        draft.payload,
        draft.payload_version,
        draft.idempotency_key,
        draft.unique_key,
        draft.max_retries,
        draft.tenant,
        draft.timeout.total_seconds() if draft.timeout else None,
        draft.context,
        to_text(draft.expires_at) if draft.expires_at else None,
        due_at,
        written,
        written,
    )


def _may_run(request: ClaimRequest, pauses: set[tuple[str, str]], queue: str, job_type: str) -> bool:
    wanted = job_type in request.types and (request.queues is None or queue in request.queues)
    return wanted and not (pauses and (("queue", queue) in pauses or ("type", job_type) in pauses))


def _is_fresh(row: Row, now: str) -> bool:
    return row[12] is None or row[12] > now


def _groups(driver: Connection) -> Iterator[tuple[str, str, int, str]]:
    """Yield each queue, type and priority that has queued jobs, with the moment its first one is due."""
    last: tuple[str, str, int] = ("", "", 0)
    while found := driver.execute(_NEXT_GROUP, last).fetchone():
        yield found
        last = found[:3]


def _first_of(driver: Connection, groups: Iterable[tuple[str, str, int]], now: str, limit: int) -> list[Row]:
    """Pick the first jobs in order from some groups, best priority first; stop reading once there are enough."""
    chosen: list[Row] = []
    by_priority: dict[int, list[tuple[str, str, int]]] = {}
    for group in groups:
        by_priority.setdefault(group[2], []).append(group)
    for priority in sorted(by_priority):
        if len(chosen) >= limit:
            break
        level = [row for group in by_priority[priority] for row in driver.execute(_READY_OF, (*group, now, limit))]
        chosen += sorted((row for row in level if _is_fresh(row, now)), key=lambda row: (row[10], row[1]))
    return chosen[:limit]


def _claim(row: Row, owner: str) -> Claim:
    """Make a claim of a row as it was before it was taken."""
    (_rowid, job_id, job_type, queue, priority, payload, version, attempts, max_retries, fence, scheduled, created) = (
        row[:12]
    )
    expires, timeout, tenant, workspace, parent, crashes, context = row[12:]
    return Claim(
        job_id,
        job_type,
        queue,
        priority,
        payload,
        version,
        attempts + 1,
        max_retries,
        fence + 1,
        from_text(scheduled),
        from_text(created),
        from_text(expires) if expires else None,
        timedelta(seconds=timeout) if timeout else None,
        tenant,
        workspace,
        parent,
        crashes,
        context,
        owner,
    )
