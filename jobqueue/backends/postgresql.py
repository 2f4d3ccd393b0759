"""Postgres: many workers share the table with SKIP LOCKED, one round trip a cycle, and the database's clock judges."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any, TypeVar

import psycopg
from django.db import OperationalError, transaction

from jobqueue.backends import postgresql_silence as silence
from jobqueue.backends import postgresql_statements as statements
from jobqueue.backends.postgresql_wake import PostgresListener, channel_of
from jobqueue.backends.sql import SqlBackend, refused, settlement_values
from jobqueue.clock import SYSTEM, to_text
from jobqueue.errors import DatabaseBusy
from jobqueue.models.fields import as_utc
from jobqueue.records import Claim, ClaimRequest, Cycle, Draft, Expired, Extension, Settlement, Sweep
from jobqueue.states import Move

T = TypeVar("T")


_NOW = "statement_timestamp()"
#: What was prepared is gone, or is somebody else's, for a pooler stands between; or a migration has changed the table.
_NOT_PREPARED = (
    psycopg.errors.InvalidSqlStatementName,
    psycopg.errors.DuplicatePreparedStatement,
    psycopg.errors.FeatureNotSupported,
)
#: Seconds for which turns go past locks after one that met some: longer than a worker leaves alone what was postponed,
#: so that its next offer waits for nothing either.
_WARY_FOR = 2.0


class PostgresBackend(SqlBackend):
    """Jobs in a Postgres table. Nothing it does depends on a session: transaction poolers are welcome.

    Where a worker's session is found to be its own, its cycle is prepared in it.
    """

    #: The driver's connection whose session was set up.
    _set_up: object = None
    #: How long a listener waits for an answer; ``None`` leaves that to TCP.
    _silence: float | None = None
    #: Until when locks of others are expected.
    _wary_until = 0.0

    def bound_silence(self, seconds: float) -> None:
        self._silence = seconds
        silence.bound(self.connection, seconds)

    def now(self) -> datetime:
        if self.clock:
            return self.clock.now()
        return as_utc(self._run(f"SELECT {_NOW}")[0][0], self.connection)

    def is_missing_table(self, error: Exception) -> bool:
        return getattr(error.__cause__, "sqlstate", None) == "42P01" and "job_queue" in str(error)

    @contextmanager
    def reporting(self) -> Iterator[None]:
        try:
            with super().reporting():
                yield
        except OperationalError as error:
            if _is_locked(error) and self.connection.connection is self._set_up:  # else the time-out is not ours
                raise DatabaseBusy(f"another session has locked what is needed in {self.alias!r}: {error}") from error
            raise

    def unit(self, work: Callable[[], T]) -> T:
        return work()

    @contextmanager
    def write(self) -> Iterator[None]:
        with transaction.atomic(using=self.alias):
            yield

    def _run(self, statement: str, parameters: Any = None) -> list[tuple[Any, ...]]:
        moment = f"'{to_text(self.clock.now())}'::timestamptz" if self.clock else _NOW
        with self.connection.cursor() as cursor:
            cursor.execute(statement.replace("@now", moment), parameters)
            rows: list[tuple[Any, ...]] = cursor.fetchall()
            return rows

    def _session(self) -> Any:
        """Set the session up for what is prepared in it, and return its connection; ``None`` if it is not our own."""
        wrapper: Any = self.connection
        if not self.owns_session or self.clock or wrapper.pool:  # a pool lends it to others
            return None
        wrapper.ensure_connection()
        driver = wrapper.connection
        if driver is not self._set_up:
            if wrapper.in_atomic_block:
                return None  # a rollback would undo it
            driver.execute(statements.SESSION)
            if driver.prepare_threshold is None:
                driver.prepare_threshold = sys.maxsize  # else what says that it is to be prepared is not
            self._set_up = driver
        return driver

    def _run_cycle(self, parameters: dict[str, Any], **variant: bool) -> list[tuple[Any, ...]]:
        """Run the statement of every turn: in a session of our own the server parses and plans it once."""
        with self.connection.wrap_database_errors:
            driver = self._session()
            statement = statements.cycle_statement(**variant, prepared=driver is not None)
            if driver is not None:
                try:
                    cursor = psycopg.Cursor(driver).execute(statement.replace("@now", _NOW), parameters, prepare=True)
                except _NOT_PREPARED as error:
                    self.owns_session = False
                    self.connection.close()
                    raise psycopg.OperationalError(f"what was prepared is of no use any more: {error}") from error
                return cursor.fetchall()
        return self._run(statement, parameters)

    # Enqueueing

    def insert(self, draft: Draft) -> bool:
        return bool(self.insert_all([draft]))

    def insert_all(self, drafts: Sequence[Draft]) -> set[str]:
        common, each = _common_and_each(drafts)
        parameters = list(common.values())
        if each:
            rows = zip(*each.values(), strict=True)
            parameters.append(json.dumps([dict(zip(each, row, strict=True)) for row in rows]))
        return {row[0] for row in self._run(statements.insert_statement(tuple(common), tuple(each)), parameters)}

    # The worker's turn

    def cycle(self, owner: str, settlements: Sequence[Settlement] = (), request: ClaimRequest | None = None) -> Cycle:
        with self.reporting():
            if not settlements or self.in_atomic():
                return self._settle_and_claim(owner, settlements, request)
            if self._wary_until <= (self.clock or SYSTEM).monotonic():
                try:
                    return self._settle_and_claim(owner, settlements, request)
                except OperationalError as error:
                    if not _is_locked(error):
                        self._be_wary()  # where no time-out could be set, its silence may have been a lock
                        raise
            return self._go_past_locks(owner, settlements, request)

    def _settle_and_claim(self, owner: str, settlements: Sequence[Settlement], request: ClaimRequest | None) -> Cycle:
        plain = all(one.move is Move.COMPLETE and not one.children and one.progress is None for one in settlements)
        if request and plain:
            return self._complete_and_claim(owner, settlements, request)
        with self._own_write():  # history, follow-up jobs and last reports: more than one statement
            settled = self.settle_and_remember(settlements)
            claimed = self._complete_and_claim(owner, (), request) if request else Cycle()
            return replace(claimed, refused=settled.refused, followed=settled.followed)

    def _go_past_locks(self, owner: str, settlements: Sequence[Settlement], request: ClaimRequest | None) -> Cycle:
        """Do the same for the rows that nobody has locked; rows that are gone are nobody's."""
        with self._own_write():
            ids = {one.id for one in settlements}
            locked = ids - {row[0] for row in self._run(statements.LOCK_FREE, {"ids": list(ids)})}
            if locked:
                locked = {row[0] for row in self._run(statements.THERE, {"ids": list(locked)})}
            cycle = self._settle_and_claim(owner, [one for one in settlements if one.id not in locked], request)
        if locked:
            self._be_wary()
        return replace(cycle, postponed=tuple(one for one in settlements if one.id in locked))

    def _be_wary(self) -> None:
        self._wary_until = (self.clock or SYSTEM).monotonic() + _WARY_FOR

    @contextmanager
    def _own_write(self) -> Iterator[None]:
        """Open a transaction in a session that is set up, which inside of one it cannot be."""
        with self.connection.wrap_database_errors:
            self._session()
        with self.write():
            yield

    def _complete_and_claim(self, owner: str, completions: Sequence[Settlement], request: ClaimRequest) -> Cycle:
        """Do it in one statement. Where others stand in the way, the next turn, at once, goes group by group."""
        by_group = self._crowded
        rows = self._run_cycle(
            {"owner": owner, "completions": _completions(completions)} | _request(request),
            completing=bool(completions),
            by_group=by_group,
        )
        claims = [self._claim(row) for row in rows if row[0] == "taken"]
        claims.sort(key=attrgetter("priority", "scheduled_at", "id"))
        self._crowded = any(row[statements.COUNT] for row in rows if row[0] == "blocked")
        accepted = {(row[1], row[statements.COUNT]) for row in rows if row[0] == "settled"}
        lapsed = any(row[0] == "lapsed" for row in rows)
        if len(claims) < request.limit and (lapsed or (self._crowded and not by_group)):
            next_due: timedelta | None = timedelta(0)
        else:
            next_due = next(_length(row[statements.SECONDS]) for row in rows if row[0] == "next due")
        return Cycle(refused(completions, accepted), tuple(claims), next_due)

    def _claim(self, row: tuple[Any, ...]) -> Claim:
        scheduled, created, expires, timeout, crashes = row[statements.SCHEDULED_AT :]
        moments = [moment and as_utc(moment, self.connection) for moment in (scheduled, created, expires)]
        return Claim._make((*row[1 : statements.SCHEDULED_AT], *moments, _length(timeout), crashes))

    def settle(self, settlements: Sequence[Settlement]) -> set[tuple[str, int]]:
        accepted: set[tuple[str, int]] = set()
        if len(settlements) > 1:
            self._run(statements.LOCK, {"ids": [one.id for one in settlements]})
        done = [one for one in settlements if one.move is Move.COMPLETE]
        rest = [one for one in settlements if one.move is not Move.COMPLETE]
        if done:
            accepted.update(self._run(statements.COMPLETE, {"completions": _completions(done)}))
        if rest:
            rows = [settlement_values(one) | {"delay": _in_seconds(one.delay)} for one in rest]
            accepted.update(self._run(statements.SETTLE, {"settlements": json.dumps(rows)}))
        return accepted

    # Leases

    def extend(self, claims: Sequence[Claim], lease: timedelta) -> Extension:
        if not claims:
            return Extension()
        rows = json.dumps([{"id": one.id, "fence": one.fence, "owner": one.owner} for one in claims])
        with self.reporting():
            answer = self._run(statements.EXTEND, {"claims": rows, "lease": lease.total_seconds()})
        found = {(job_id, fence): (cancelled, extended) for job_id, fence, cancelled, extended in answer}
        held = [(one, found.get((one.id, one.fence))) for one in claims]
        return Extension(
            lost=tuple(one for one, state in held if state is None),
            skipped=tuple(one for one, state in held if state and not state[1]),
            cancelled=tuple(one for one, state in held if state and state[0]),
        )

    def sweep(self, judge: Callable[[Expired], Settlement], limit: int = 500) -> Sweep:
        with self.reporting(), self.write():
            ended = [judge(one) for one in self.ran_out(self._run(statements.RAN_OUT, {"limit": limit}))]
            self.settle_and_remember(ended)
            return Sweep(tuple(ended), self._end_expired(limit))

    def _end_expired(self, limit: int) -> tuple[str, ...]:
        return tuple(row[0] for row in self._run(statements.EXPIRE, {"limit": limit}))

    # Wake-ups

    def wake(self) -> None:
        if self._producer.may_send():
            # On the caller's own connection, after its commit: inside the transaction it would take a global lock.
            with self.reporting():
                self._run("SELECT pg_notify(%s, '')", [channel_of(self.connection)])

    def listen(self) -> PostgresListener:
        return PostgresListener(self.alias, self._silence)


def _is_locked(error: Exception) -> bool:
    """Tell a lock that was waited for too long from other trouble."""
    return isinstance(error.__cause__, psycopg.errors.LockNotAvailable)


_SAID: dict[str, Callable[[Draft], Any]] = {name: attrgetter(name) for name in statements.DRAFTED} | {
    "timeout": lambda draft: _in_seconds(draft.timeout),
    "expires_at": lambda draft: draft.expires_at and to_text(draft.expires_at),
    "scheduled_at": lambda draft: draft.scheduled_at and to_text(draft.scheduled_at),
    "delay": lambda draft: draft.delay.total_seconds() or None,
}


def _common_and_each(drafts: Sequence[Draft]) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """Read what drafts say: what is the same in all of them, and column by column what is not."""
    common, each = {}, {}
    for name, read in _SAID.items():
        values = [read(draft) for draft in drafts]
        if values.count(values[0]) < len(values):
            each[name] = values
        elif values[0] is not None:
            common[name] = values[0]
    return common, each


def _completions(settlements: Sequence[Settlement]) -> str:
    """Spell completions out by id and fence; of two offers for a claim the first."""
    return json.dumps(
        {
            f"{one.id} {one.fence}": {"id": one.id, "fence": one.fence, "owner": one.owner, "result": one.result}
            for one in reversed(settlements)
        }
    )


def _request(request: ClaimRequest) -> dict[str, Any]:
    return {
        "limit": request.limit,
        "types": sorted(request.types),
        "queues": None if request.queues is None else sorted(request.queues),
        "lease": request.lease.total_seconds(),
        "leases": json.dumps({name: lease.total_seconds() for name, lease in request.leases.items()}),
    }


def _in_seconds(length: timedelta | None) -> float | None:
    return None if length is None else length.total_seconds()


def _length(seconds: float | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)
