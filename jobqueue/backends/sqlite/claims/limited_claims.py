"""The choice of jobs under limits on SQLite, where the claim's transaction holds the only write lock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from jobqueue.backends.ports.limits import Limits
from jobqueue.backends.sql.claims.crowd import Group
from jobqueue.backends.sql.claims.limited_claims import LimitedClaims, Start
from jobqueue.backends.sqlite.claims.lanes import SqliteLaneClaims
from jobqueue.backends.sqlite.claims.turns import SqliteFairClaims
from jobqueue.backends.sqlite.session import SqliteSession
from jobqueue.clock import from_text, to_text
from jobqueue.policy.limits.limits import Account, Candidate

# Over job_queue_leased, which has the running jobs alone.
RUNNING = (
    "SELECT queue, type, concurrency_key, count(*) FROM job_queue "
    "WHERE status = 'in_progress' AND lease_until > '' GROUP BY queue, type, concurrency_key"
)
_OF_GROUP = "FROM job_queue WHERE status = 'queued' AND queue = :queue AND type = :type AND priority = :priority"
# Over job_queue_ready_type.
FIRST = (
    f"SELECT scheduled_at, id, concurrency_key {_OF_GROUP} AND scheduled_at <= :now "
    "ORDER BY scheduled_at, id LIMIT :most"
)
# Over job_queue_ready_key: the first job of the next key, and the first jobs of one key.
NEXT_KEY = (
    f"SELECT scheduled_at, id, concurrency_key {_OF_GROUP} AND concurrency_key IS NOT NULL AND concurrency_key > :key "
    "ORDER BY concurrency_key, scheduled_at, id LIMIT 1"
)
FIRST_OF_KEY = (
    f"SELECT scheduled_at, id, concurrency_key {_OF_GROUP} AND concurrency_key IS NOT NULL AND concurrency_key = :key "
    "AND scheduled_at <= :now ORDER BY scheduled_at, id LIMIT :most"
)
STARTS = (
    "SELECT coalesce(sum(count), 0), min(ends_at) FROM job_queue_start "
    "WHERE place = ? AND key = ? AND ends_at > ? AND ends_at <= ?"
)
ADD_START = "INSERT INTO job_queue_start (place, key, count, ends_at) VALUES (?, ?, ?, ?)"
PRUNE = (
    "DELETE FROM job_queue_start WHERE id IN "
    "(SELECT id FROM job_queue_start WHERE ends_at <= ? ORDER BY ends_at LIMIT 1000)"
)


class SqliteLimitedClaims(LimitedClaims):
    """Reads through the driver."""

    _session: SqliteSession

    def __init__(self, limits: Limits, session: SqliteSession) -> None:
        super().__init__(limits, session)
        self.lanes = SqliteLaneClaims(session)
        self.turns = SqliteFairClaims(session)

    def lock(self, places: Sequence[str]) -> set[str]:
        return set(places)

    def running(self) -> Iterable[tuple[str, str, str | None, int]]:
        with self._session.any_text(), self._session.driver() as driver:
            return list(driver.execute(RUNNING))

    def first(self, most: dict[Group, int]) -> list[Candidate]:
        return [one for group, count in most.items() for one in self._read(FIRST, group, most=count)]

    def heads(self, group: Group, after: str, most: int) -> list[Candidate]:
        heads: list[Candidate] = []
        now = to_text(self._session.now())
        while len(heads) < most and (found := self._read(NEXT_KEY, group, key=after)):
            after = found[0].keys or ""
            heads.append(found[0] if found[0].scheduled_at <= now else found[0]._replace(id=""))
        return heads

    def first_of_keys(self, group: Group, most: Sequence[tuple[str | None, int]]) -> list[Candidate]:
        return [one for key, count in most for one in self._read(FIRST_OF_KEY, group, key=key, most=count)]

    def _read(self, statement: str, group: Group, **more: Any) -> list[Candidate]:
        given = {**group._asdict(), "now": to_text(self._session.now()), **more}
        with self._session.driver() as driver:
            rows = driver.execute(statement, given).fetchall()
        return [
            Candidate(group.priority, due_at, job_id, group.queue, group.type, keys) for due_at, job_id, keys in rows
        ]

    def starts(self, windows: Mapping[Account, float]) -> list[tuple[str, str, int, float]]:
        now = self._session.now()
        found = []
        with self._session.driver() as driver:
            for account, per in windows.items():
                window = to_text(now), to_text(now + timedelta(seconds=per))
                count, frees = driver.execute(STARTS, (*account, *window)).fetchone()
                found.append((*account, count, (from_text(frees) - now).total_seconds() if frees else 0.0))
        return found

    def add_starts(self, starts: Sequence[Start]) -> None:
        now = self._session.now()
        with self._session.driver() as driver:
            driver.executemany(
                ADD_START,
                [(one.place, one.key, one.number, to_text(now + timedelta(seconds=one.per))) for one in starts],
            )

    def prune_starts(self) -> None:
        with self._session.driver() as driver:
            driver.execute(PRUNE, (to_text(self._session.now()),))
