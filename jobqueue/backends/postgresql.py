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
from jobqueue.backends import postgresql_values as values
from jobqueue.backends.crowd import WALKED_AT_ONCE, Group
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
#: Classes of SQLSTATE that tell of the server or the session: connections, transactions, resources, locks, what is
#: prepared, and its own faults.
_OF_THE_SERVER = ("08", "0A", "25", "26", "28", "3D", "40", "53", "54", "55", "57", "58", "F0", "XX")
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

    def lies_in_row(self, error: Exception) -> bool:
        state = getattr(error.__cause__, "sqlstate", None) or ""
        if not state or self.is_missing_table(error):
            return super().lies_in_row(error)
        return not state.startswith(_OF_THE_SERVER)  # what else there is, a trigger may have said

    def check_deferred(self) -> None:
        self.connection.check_constraints()

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
        with self.connection.cursor() as cursor, silence.sending(parameters):
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
                    with silence.sending(parameters):
                        cursor = psycopg.Cursor(driver).execute(
                            statement.replace("@now", _NOW), parameters, prepare=True
                        )
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
        common, each = values.common_and_each(drafts)
        parameters = list(common.values())
        if each:
            rows = zip(*each.values(), strict=True)
            parameters.append(json.dumps([dict(zip(each, row, strict=True)) for row in rows]))
        return {row[0] for row in self._run(statements.insert_statement(tuple(common), tuple(each)), parameters)}

    # The worker's turn

    def turn(self, owner: str, settlements: Sequence[Settlement], request: ClaimRequest | None) -> Cycle:
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
        by_group = self._crowd.is_met
        if by_group and self._crowd.is_large and not self._crowd.is_known:
            self._walk(request)
        known = self._crowd.is_known
        given: dict[str, Any] = {"owner": owner, "completions": values.completions(completions)}
        if known:
            given["groups"] = json.dumps([group._asdict() for group in self._crowd.open_to(request)])
        if self.left_out:
            given["left_out"] = list(self.left_out)
        rows = self._run_cycle(
            given | values.of_request(request),
            completing=bool(completions),
            by_group=by_group,
            known=known,
            sparing=bool(self.left_out),
        )
        claims = [self._claim(row) for row in rows if row[0] == "taken"]
        claims.sort(key=attrgetter("priority", "scheduled_at", "id"))
        blocked = next(row for row in rows if row[0] == "blocked")
        if not known:
            self._crowd.met(blocked[statements.GROUPS] if by_group else 0, is_met=bool(blocked[statements.COUNT]))
        accepted = {(row[1], row[statements.COUNT]) for row in rows if row[0] == "settled"}
        lapsed = sum(row[0] == "lapsed" for row in rows)
        if len(claims) < request.limit and (lapsed or (self._crowd.is_met and not by_group)):
            next_due: timedelta | None = timedelta(0)
        else:
            next_due = next(values.length(row[statements.SECONDS]) for row in rows if row[0] == "next due")
        if blocked[statements.CHOSEN] > len(claims) + lapsed:  # a trigger may leave a row as it is, and say nothing
            self.operate(lambda: self._obstacles.among_due(owner, request))
        return self._crowd.told(Cycle(refused(completions, accepted), tuple(claims), next_due), request)

    def _walk(self, request: ClaimRequest) -> None:
        """Find the groups there are, which takes long where another program has made very many."""
        rows = self._run(statements.WALK, {"most": WALKED_AT_ONCE + 1} | values.of_request(request))
        count, wanted = rows[0][:2]
        due, later = ([Group(*row[3:]) for row in rows if row[2] is is_due] for is_due in (True, False))
        self._crowd.walked(count, is_met=wanted < count, due=due, later=later)

    def _claim(self, row: tuple[Any, ...]) -> Claim:
        scheduled, created, expires, timeout, crashes = row[statements.SCHEDULED_AT :]
        moments = [moment and as_utc(moment, self.connection) for moment in (scheduled, created, expires)]
        return Claim._make((*row[1 : statements.SCHEDULED_AT], *moments, values.length(timeout), crashes))

    def settle(self, settlements: Sequence[Settlement]) -> set[tuple[str, int]]:
        accepted: set[tuple[str, int]] = set()
        if len(settlements) > 1:
            self._run(statements.LOCK, {"ids": [one.id for one in settlements]})
        done = [one for one in settlements if one.move is Move.COMPLETE]
        rest = [one for one in settlements if one.move is not Move.COMPLETE]
        if done:
            accepted.update(self._run(statements.COMPLETE, {"completions": values.completions(done)}))
        if rest:
            rows = [settlement_values(one) | {"delay": values.in_seconds(one.delay)} for one in rest]
            accepted.update(self._run(statements.SETTLE, {"settlements": json.dumps(rows)}))
        return accepted

    # Leases

    def renew(self, claims: Sequence[Claim], lease: timedelta) -> Extension:
        rows = json.dumps([{"id": one.id, "fence": one.fence, "owner": one.owner} for one in claims])
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
            self._obstacles.forget()
            rows = self._run(statements.RAN_OUT, {"limit": limit + len(self.left_out)})
            expired = self.ran_out([row for row in rows if row[0] not in self.left_out])
            return Sweep(tuple(self.settle_expired(expired, judge)), self.end_expired(limit))

    def expire(self, limit: int) -> list[str]:
        return [row[0] for row in self._run(statements.EXPIRE, {"limit": limit})]

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
