"""Postgres: many workers share the table with SKIP LOCKED, one round trip a cycle, and the database's clock judges."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from typing import Any, TypeVar

from django.db import transaction

from jobqueue.backends.postgresql_wake import PostgresListener, channel_of
from jobqueue.backends.sql import (
    CLAIM_COLUMNS,
    HELD,
    INSERT_COLUMNS,
    SETTLE,
    SqlBackend,
    ran_out,
    refused,
    settlement_values,
)
from jobqueue.backends.wake import Producer
from jobqueue.clock import Clock, to_text
from jobqueue.models.fields import as_utc
from jobqueue.records import Claim, ClaimRequest, Cycle, Draft, Expired, Extension, Settlement, Sweep
from jobqueue.states import Move

T = TypeVar("T")


def _only(what: str, **known: str) -> str:
    """Select a row in the shape of a claim that knows only some columns."""
    return f"SELECT '{what}', " + ", ".join(known.get(name, "NULL") for name in CLAIM_COLUMNS.split(", "))


# @now is statement_timestamp(), or the virtual clock of a test.
_DUE_AT = "coalesce({at}::timestamptz, @now + {delay} * interval '1 second')"
_INSERT = f"""
INSERT INTO job_queue ({INSERT_COLUMNS})
VALUES (%s, %s, %s, %s, %s::jsonb, %s, %s, %s, %s, %s, %s, %s::jsonb, %s::timestamptz,
        {_DUE_AT.format(at="%s", delay="%s")}, @now, @now)
ON CONFLICT DO NOTHING RETURNING id
"""
# One parameter carries all rows: JSON, which Python writes and Postgres reads in C.
_INSERT_ALL = f"""
INSERT INTO job_queue ({INSERT_COLUMNS})
SELECT id, type, queue, priority, payload::jsonb, payload_version, idempotency_key, unique_key, max_retries, tenant,
       timeout, context::jsonb, expires_at, {_DUE_AT.format(at="scheduled_at", delay="delay")}, @now, @now
  FROM json_to_recordset(%s::json) AS d(
       id text, type text, queue text, priority smallint, payload text, payload_version integer, idempotency_key text,
       unique_key text, max_retries integer, tenant text, timeout double precision, context text,
       expires_at timestamptz, scheduled_at timestamptz, delay double precision)
ON CONFLICT DO NOTHING RETURNING id
"""

# Found by primary key, in the order given.
_COMPLETE = f"""
UPDATE job_queue AS j SET status = 'completed', result = v.result, completed_at = @now, updated_at = @now,
       lease_owner = NULL, lease_until = NULL
  FROM (SELECT id, fence, owner, result::jsonb AS result
          FROM json_to_recordset(%(completions)s::json) AS r(id text, fence bigint, owner text, result text)) AS v
 WHERE {HELD} RETURNING j.id, j.fence
"""
_SETTLE = f"""
UPDATE job_queue AS j SET {SETTLE}
  FROM (SELECT id, fence, owner, target, result::jsonb AS result, end_reason, error, fingerprint, refund, crashed,
               @now + delay * interval '1 second' AS due_at, @now AS now
          FROM json_to_recordset(%(settlements)s::json) AS r(
               id text, fence bigint, owner text, target text, result text, end_reason text, error text,
               fingerprint text, refund integer, crashed integer, delay double precision)) AS v
 WHERE {HELD} RETURNING j.id, j.fence
"""

_MAY_RUN = """
    {row}.type = ANY(%(types)s) AND (%(queues)s::text[] IS NULL OR {row}.queue = ANY(%(queues)s))
    AND {row}.queue <> ALL(ARRAY(SELECT name FROM job_queue_pause WHERE scope = 'queue'))
    AND {row}.type <> ALL(ARRAY(SELECT name FROM job_queue_pause WHERE scope = 'type'))
"""
_IS_FRESH = "(expires_at IS NULL OR expires_at > @now)"

# Locks the first rows in order, skipping those another worker holds. One arm per priority keeps each arm an index range
# over job_queue_ready (priority, scheduled_at, id); a single range would walk every future job of a better priority.
_FIRST = f"""
head AS MATERIALIZED (
    SELECT c.* FROM generate_series(1, 10) AS p(p) CROSS JOIN LATERAL (
        SELECT id, queue, type, expires_at FROM job_queue
         WHERE status = 'queued' AND priority > 0 AND priority = p.p AND scheduled_at <= @now
         ORDER BY scheduled_at, id LIMIT %(limit)s FOR UPDATE SKIP LOCKED
    ) AS c LIMIT %(limit)s),
mine AS MATERIALIZED (SELECT id FROM head WHERE {_MAY_RUN.format(row="head")} AND {_IS_FRESH})
"""
# The same where others stand in the way: a skip-scan over job_queue_ready_type (queue, type, priority, scheduled_at,
# id) finds the groups present, and each wanted one is an arm of its own. job_queue_ready cannot serve these arms, for
# they do not say `priority > 0`. The arms read unlocked, since locks would be taken group by group and not in order;
# they read further than the limit, so that workers find something behind the locks of others.
_FIRST_OF_GROUPS = f"""
groups AS (
    (SELECT queue, type, priority FROM job_queue WHERE status = 'queued' ORDER BY queue, type, priority LIMIT 1)
    UNION ALL
    SELECT n.* FROM groups AS g CROSS JOIN LATERAL (
        SELECT queue, type, priority FROM job_queue
         WHERE status = 'queued' AND (queue, type, priority) > (g.queue, g.type, g.priority)
         ORDER BY queue, type, priority LIMIT 1) AS n),
wanted AS MATERIALIZED (SELECT * FROM groups WHERE {_MAY_RUN.format(row="groups")}),
head AS MATERIALIZED (
    SELECT c.* FROM wanted AS w CROSS JOIN LATERAL (
        SELECT id, priority, scheduled_at FROM job_queue
         WHERE status = 'queued' AND queue = w.queue AND type = w.type AND priority = w.priority
           AND scheduled_at <= @now AND {_IS_FRESH}
         ORDER BY scheduled_at, id LIMIT 4 * %(limit)s) AS c),
mine AS MATERIALIZED (
    SELECT free.id FROM (SELECT id FROM head ORDER BY priority, scheduled_at, id) AS h CROSS JOIN LATERAL (
        SELECT id FROM job_queue AS j WHERE j.id = h.id AND j.status = 'queued' FOR UPDATE SKIP LOCKED
    ) AS free LIMIT %(limit)s)
"""
_TAKE = f"""
taken AS (
    UPDATE job_queue AS j SET status = 'in_progress', lease_owner = %(owner)s, started_at = @now, updated_at = @now,
           lease_until = @now + coalesce((%(leases)s::json ->> j.type)::float8, %(lease)s) * interval '1 second',
           attempts = j.attempts + 1, fence = j.fence + 1, cancel_requested_at = NULL, end_reason = NULL
     WHERE j.id = ANY(ARRAY(SELECT id FROM mine)) RETURNING {CLAIM_COLUMNS})
"""
_COLUMNS = CLAIM_COLUMNS.split(", ")
_MOMENTS = [name for name in _COLUMNS if name.endswith("_at")]
_ATTEMPTS = 1 + _COLUMNS.index("attempts")
_COUNT = 1 + _COLUMNS.index("fence")
_SECONDS = 1 + _COLUMNS.index("timeout")

# What comes back: the claims, then which settlements were accepted, then how much stood in the way.
_TEXTS = {"payload": "payload::text", "context": "context::text"}
_RETURN_TAKEN = f"SELECT 'taken', {', '.join(_TEXTS.get(name, name) for name in _COLUMNS)} FROM taken"
_RETURN_SETTLED = _only("settled", id="id", fence="fence") + " FROM settled"
# Over job_queue_ready, one range per priority; not looked up where the claim is full.
_RETURN_NEXT_DUE = _only(
    "next due",
    timeout="""CASE WHEN (SELECT count(*) FROM taken) < %(limit)s THEN (
        SELECT extract(epoch FROM min(c.scheduled_at) - @now)::float8
          FROM generate_series(1, 10) AS p(p) CROSS JOIN LATERAL (
               SELECT scheduled_at FROM job_queue WHERE status = 'queued' AND priority > 0 AND priority = p.p
                  AND scheduled_at > @now ORDER BY scheduled_at LIMIT 1) AS c) END""",
)
_RETURN_BLOCKED = _only("blocked", fence="(SELECT count(*) FROM {all}) - (SELECT count(*) FROM {fit})")

# Over job_queue_leased (lease_until). A row that its own handler's transaction has locked is about to be settled.
_RAN_OUT = """
SELECT id, type, fence, coalesce(lease_owner, ''), attempts, max_retries, crash_count FROM job_queue
 WHERE status = 'in_progress' AND lease_until < @now ORDER BY lease_until, id LIMIT %(limit)s FOR UPDATE SKIP LOCKED
"""
# Over job_queue_expiring (expires_at).
_EXPIRE = """
UPDATE job_queue SET status = 'failed', end_reason = 'expired', completed_at = @now, updated_at = @now
 WHERE id = ANY(ARRAY(
    SELECT id FROM job_queue WHERE status = 'queued' AND expires_at IS NOT NULL AND expires_at <= @now
     ORDER BY expires_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED))
RETURNING id
"""
# What is held is read without locks; what is free to lock is extended, in the order of ids.
_EXTEND = f"""
WITH v AS MATERIALIZED (SELECT * FROM json_to_recordset(%(claims)s::json) AS r(id text, fence bigint, owner text)),
held AS MATERIALIZED (SELECT j.id, j.fence, j.cancel_requested_at FROM v JOIN job_queue AS j ON {HELD}),
free AS MATERIALIZED (
    SELECT f.id FROM (SELECT id FROM held ORDER BY id) AS h CROSS JOIN LATERAL (
        SELECT id FROM job_queue AS j WHERE j.id = h.id FOR UPDATE SKIP LOCKED) AS f),
extended AS (
    UPDATE job_queue AS j SET lease_until = @now + %(lease)s * interval '1 second' FROM v
     WHERE {HELD} AND j.id = ANY(ARRAY(SELECT id FROM free)) RETURNING j.id)
SELECT held.id, held.fence, held.cancel_requested_at IS NOT NULL, extended.id IS NOT NULL
  FROM held LEFT JOIN extended USING (id)
"""


@cache
def _cycle_statement(*, completing: bool, by_group: bool) -> str:
    """Put a cycle's statement together."""
    counted = {"all": "groups", "fit": "wanted"} if by_group else {"all": "head", "fit": "mine"}
    steps = [_FIRST_OF_GROUPS if by_group else _FIRST, _TAKE]
    answers = [_RETURN_TAKEN, _RETURN_BLOCKED.format(**counted), _RETURN_NEXT_DUE]
    if completing:
        steps.append(f"settled AS ({_COMPLETE})")
        answers.append(_RETURN_SETTLED)
    return f"WITH RECURSIVE {', '.join(steps)} {' UNION ALL '.join(answers)}"


class PostgresBackend(SqlBackend):
    """Jobs in a Postgres table. Nothing it does depends on a session: transaction poolers are welcome."""

    def __init__(self, alias: str, clock: Clock | None = None) -> None:
        super().__init__(alias, clock)
        self._producer = Producer()
        self._crowded = False

    def now(self) -> datetime:
        if self.clock:
            return self.clock.now()
        return as_utc(self._run("SELECT statement_timestamp()")[0][0], self.connection)

    def is_missing_table(self, error: Exception) -> bool:
        return getattr(error.__cause__, "sqlstate", None) == "42P01" and "job_queue" in str(error)

    def unit(self, work: Callable[[], T]) -> T:
        return work()

    @contextmanager
    def write(self) -> Iterator[None]:
        with transaction.atomic(using=self.alias):
            yield

    def _run(self, statement: str, parameters: Any = None) -> list[tuple[Any, ...]]:
        moment = f"'{to_text(self.clock.now())}'::timestamptz" if self.clock else "statement_timestamp()"
        with self.connection.cursor() as cursor:
            cursor.execute(statement.replace("@now", moment), parameters)
            rows: list[tuple[Any, ...]] = cursor.fetchall()
            return rows

    # Enqueueing

    def insert(self, draft: Draft) -> bool:
        return bool(self._run(_INSERT, list(_values(draft).values())))

    def insert_all(self, drafts: Sequence[Draft]) -> set[str]:
        rows = [_values(draft) for draft in drafts]
        return {row[0] for row in self._run(_INSERT_ALL, [json.dumps(rows)])}

    # The worker's turn

    def cycle(self, owner: str, settlements: Sequence[Settlement] = (), request: ClaimRequest | None = None) -> Cycle:
        with self.reporting():
            if request and all(one.move is Move.COMPLETE for one in settlements):
                return self._complete_and_claim(owner, settlements, request)
            with self.write():  # failures write history too: more than one statement
                unaccepted = self.settle_and_remember(settlements)
                claimed = self._complete_and_claim(owner, (), request) if request else Cycle()
                return replace(claimed, refused=unaccepted)

    def _complete_and_claim(self, owner: str, completions: Sequence[Settlement], request: ClaimRequest) -> Cycle:
        """Do it in one statement. Where others stand in the way, the next turn, at once, goes group by group."""
        by_group = self._crowded
        rows = self._run(
            _cycle_statement(completing=bool(completions), by_group=by_group),
            {"owner": owner, "completions": _completions(completions)} | _request(request),
        )
        claims = [self._claim(row, owner) for row in rows if row[0] == "taken"]
        claims.sort(key=lambda claim: (claim.priority, claim.scheduled_at, claim.id))
        self._crowded = any(row[_COUNT] for row in rows if row[0] == "blocked")
        accepted = {(row[1], row[_COUNT]) for row in rows if row[0] == "settled"}
        next_due = next(_length(row[_SECONDS]) for row in rows if row[0] == "next due")
        if self._crowded and not by_group and len(claims) < request.limit:
            next_due = timedelta(0)
        return Cycle(refused(completions, accepted), tuple(claims), next_due)

    def _claim(self, row: tuple[Any, ...], owner: str) -> Claim:
        values = dict(zip(_COLUMNS, row[1:], strict=True), owner=owner, attempt=row[_ATTEMPTS])
        del values["attempts"]
        for name in _MOMENTS:
            values[name] = values[name] and as_utc(values[name], self.connection)
        values["timeout"] = _length(values["timeout"])
        return Claim(**values)

    def settle(self, settlements: Sequence[Settlement]) -> set[tuple[str, int]]:
        accepted: set[tuple[str, int]] = set()
        done = [one for one in settlements if one.move is Move.COMPLETE]
        rest = [one for one in settlements if one.move is not Move.COMPLETE]
        if done:
            accepted.update(self._run(_COMPLETE, {"completions": _completions(done)}))
        if rest:
            rows = [settlement_values(one) | {"delay": _in_seconds(one.delay)} for one in rest]
            accepted.update(self._run(_SETTLE, {"settlements": json.dumps(rows)}))
        return accepted

    # Leases

    def extend(self, claims: Sequence[Claim], lease: timedelta) -> Extension:
        if not claims:
            return Extension()
        rows = json.dumps([{"id": one.id, "fence": one.fence, "owner": one.owner} for one in claims])
        with self.reporting():
            answer = self._run(_EXTEND, {"claims": rows, "lease": lease.total_seconds()})
        found = {(job_id, fence): (cancelled, extended) for job_id, fence, cancelled, extended in answer}
        held = [(one, found.get((one.id, one.fence))) for one in claims]
        return Extension(
            lost=tuple(one for one, state in held if state is None),
            skipped=tuple(one for one, state in held if state and not state[1]),
            cancelled=tuple(one for one, state in held if state and state[0]),
        )

    def sweep(self, judge: Callable[[Expired], Settlement], limit: int = 500) -> Sweep:
        with self.reporting(), self.write():
            ended = [judge(one) for one in ran_out(self._run(_RAN_OUT, {"limit": limit}))]
            self.settle_and_remember(ended)
            return Sweep(tuple(ended), self._end_expired(limit))

    def _end_expired(self, limit: int) -> tuple[str, ...]:
        return tuple(row[0] for row in self._run(_EXPIRE, {"limit": limit}))

    # Wake-ups

    def wake(self) -> None:
        if self._producer.may_send():
            # On the caller's own connection, after its commit: inside the transaction it would take a global lock.
            self._run("SELECT pg_notify(%s, '')", [channel_of(self.connection)])

    def listen(self) -> PostgresListener:
        return PostgresListener(self.alias)


def _values(draft: Draft) -> dict[str, Any]:
    """The values of an INSERT, in its order."""
    return {
        "id": draft.id,
        "type": draft.type,
        "queue": draft.queue,
        "priority": draft.priority,
        "payload": draft.payload,
        "payload_version": draft.payload_version,
        "idempotency_key": draft.idempotency_key,
        "unique_key": draft.unique_key,
        "max_retries": draft.max_retries,
        "tenant": draft.tenant,
        "timeout": _in_seconds(draft.timeout),
        "context": draft.context,
        "expires_at": draft.expires_at and to_text(draft.expires_at),
        "scheduled_at": draft.scheduled_at and to_text(draft.scheduled_at),
        "delay": draft.delay.total_seconds(),
    }


def _completions(settlements: Sequence[Settlement]) -> str:
    return json.dumps(
        [{"id": one.id, "fence": one.fence, "owner": one.owner, "result": one.result} for one in settlements]
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
