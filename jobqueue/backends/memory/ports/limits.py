"""Limits in memory, and the choice of jobs under them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from itertools import groupby, islice
from operator import itemgetter

from jobqueue.backends.memory.ports.lanes import MemoryLanes
from jobqueue.backends.memory.ports.turns import MemoryTurns
from jobqueue.backends.memory.tables import MemoryTables
from jobqueue.backends.ports.limits import Limits
from jobqueue.policy.limits.limits import Allowances, Candidate, Chosen, LimitBook, choose
from jobqueue.policy.limits.uses import Kind, Running, accounts_of, uses, uses_of
from jobqueue.records import ClaimRequest, JobRecord, Limit, LimitUse, StoredLimit
from jobqueue.states import JobStatus


class MemoryLimits(Limits):
    """Limits in a dictionary."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables
        self.lanes = MemoryLanes(tables)
        self.turns = MemoryTurns(tables)

    def set(self, limit: Limit, reason: str = "", author: str = "") -> None:
        with self._tables.atomic():
            self._tables.limits[limit.place] = StoredLimit(limit, reason, author, self._tables.now())

    def unset(self, limit: Limit) -> bool:
        with self._tables.atomic():
            return self._tables.limits.pop(limit.place, None) is not None

    def stored(self) -> list[StoredLimit]:
        def place(one: StoredLimit) -> tuple[str, str, str, float, str]:
            return (one.limit.scope, one.limit.name, one.limit.kind, one.limit.per, one.limit.key)

        with self._tables.lock:
            return sorted(self._tables.limits.values(), key=place)

    def uses(self, book: LimitBook, pairs: Sequence[tuple[str, str]], most: int = 20) -> list[LimitUse]:
        with self._tables.lock:
            return uses(book, pairs, self._occupants(), self._starts(), most)

    def uses_of(self, book: LimitBook, kinds: Collection[Kind]) -> list[LimitUse]:
        with self._tables.lock:
            return uses_of(book, accounts_of(book, kinds), self._occupants(), self._starts())

    def first_due(self, queue: str, job_type: str, sample: int = 25) -> list[tuple[str | None, datetime]]:
        now = self._tables.now()
        with self._tables.lock:
            due = sorted(
                (row.priority, row.scheduled_at, row.id, row.concurrency_key)
                for row in self._tables.jobs.values()
                if (row.status, row.queue, row.type) == (JobStatus.QUEUED, queue, job_type) and row.scheduled_at <= now
            )
        by_priority = groupby(due, key=lambda row: row[0])
        return [(row[3], row[1]) for _priority, rows in by_priority for row in islice(rows, sample)]

    def _occupants(self) -> list[Running]:
        return [Running(row.id, row.queue, row.type, row.concurrency_key, row.started_at) for row in self._running()]

    def choose(self, rows: Sequence[JobRecord], request: ClaimRequest) -> tuple[list[JobRecord], Chosen]:
        """Return the first of these due jobs that their limits admit, and what became of the others."""
        book = self._book(request)
        allowances = Allowances(book)
        for row in self._running():
            allowances.occupied(row.queue, row.type, row.concurrency_key, 1)
        for place, key, count, frees in self._starts():
            allowances.started(place, key, count, frees.total_seconds())
        placed, withheld = self.lanes.choose(rows, book)
        candidates = [
            (Candidate(row.priority, row.scheduled_at, row.id, row.queue, row.type, row.concurrency_key),) * 2
            for row in rows
            if not book.is_ordered(row.queue)
        ]
        pairs = sorted([*candidates, *placed], key=itemgetter(1)) if placed else candidates
        in_order = [job for job, _place in pairs]
        chosen = Chosen()
        fair = self.turns.in_order(rows, book, allowances, chosen)
        choose(in_order, allowances, request.limit, chosen, fair)
        chosen.withheld += withheld
        found = {row.id: row for row in rows}
        return [found[one.id] for one in chosen.jobs], chosen

    def record(self, rows: Sequence[JobRecord], request: ClaimRequest) -> None:
        """Record the starts of claimed jobs under rates, and forget those that have left their windows."""
        book = self._book(request)
        self.turns.record(rows, book)
        now = self._tables.now()
        self._tables.starts = [one for one in self._tables.starts if one[2] > now]
        allowances = Allowances(book)
        self._tables.starts += [
            (*account, now + timedelta(seconds=per), timedelta(seconds=per))
            for row in rows
            for account, per in allowances.windows(row.queue, row.type, row.concurrency_key)
        ]

    def _book(self, request: ClaimRequest) -> LimitBook:
        stored = (one.limit for one in self._tables.limits.values())
        return LimitBook(request.limits, request.names, stored, request.entries, request.queue_options)

    def _running(self) -> list[JobRecord]:
        rows = self._tables.jobs.values()
        return [row for row in rows if row.status is JobStatus.IN_PROGRESS and row.lease_until is not None]

    def _starts(self) -> list[tuple[str, str, int, timedelta]]:
        now = self._tables.now()
        ends: dict[tuple[str, str], list[datetime]] = {}
        for place, key, end, per in self._tables.starts:
            if now < end <= now + per:  # a later one was stored while the clock was wrong
                ends.setdefault((place, key), []).append(end)
        return [(*account, len(several), min(several) - now) for account, several in ends.items()]
