"""The jobs of fair queues on SQLite, where the claim's transaction holds the only write lock."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any

from jobqueue.backends.sql.claims.crowd import Group
from jobqueue.backends.sql.claims.turns import KEPT, MOST_LINES, SLICE, FairClaims, Level, Look
from jobqueue.backends.sqlite.session import SqliteSession
from jobqueue.clock import to_text
from jobqueue.policy.limits.limits import Candidate
from jobqueue.policy.turns import Head
from jobqueue.records.turn import ServedTurn

_COLUMNS = "scheduled_at, id, concurrency_key, fair_key"
_OF_GROUP = "FROM job_queue WHERE status = 'queued' AND queue = :queue AND type = :type AND priority = :priority"
# Over job_queue_turn_order, whose last column is the rowid.
LINES = (
    "SELECT id, queue, priority, key, count, finish, clock FROM job_queue_turn "
    "WHERE queue = :queue AND priority = :priority AND id >= :newest ORDER BY id DESC LIMIT :most"
)
# Over job_queue_ready_turn: the next turn, and the first jobs of one.
NEXT_TURN = (
    f"SELECT fair_key, scheduled_at, id {_OF_GROUP} AND fair_key IS NOT NULL AND fair_key > :after "
    "ORDER BY fair_key, scheduled_at, id LIMIT 1"
)
FIRST_TURN = NEXT_TURN.replace("> :after", ">= :after")
FIRST_OF_TURN = (
    f"SELECT {_COLUMNS} {_OF_GROUP} AND fair_key IS NOT NULL AND fair_key = :key AND scheduled_at <= :now "
    "ORDER BY scheduled_at, id LIMIT :most"
)
# Over job_queue_ready_type.
PLACES = f"SELECT {_COLUMNS} {_OF_GROUP} AND scheduled_at <= :now ORDER BY scheduled_at, id LIMIT :most"
FURTHER = (
    f"SELECT {_COLUMNS} {_OF_GROUP} AND scheduled_at <= :now AND (scheduled_at, id) > (:due_at, :id) "
    "ORDER BY scheduled_at, id LIMIT :most"
)
KEY_OF = "SELECT id, fair_key FROM job_queue WHERE id = ?"
ADD = "INSERT INTO job_queue_turn (queue, priority, key, count, finish, clock, served_at) VALUES (?, ?, ?, ?, ?, ?, ?)"
# A line of the future was stored while the clock was wrong.
PRUNE = "DELETE FROM job_queue_turn WHERE id IN (SELECT id FROM job_queue_turn WHERE served_at {} ? LIMIT 1000)"


class SqliteFairClaims(FairClaims):
    """Reads through the driver."""

    def __init__(self, session: SqliteSession) -> None:
        super().__init__()
        self._session = session

    def look(self, groups: Sequence[Group], level: Level, most: int) -> Look:
        look = Look()
        of_level = {"queue": groups[0].queue, "priority": groups[0].priority}
        given = of_level | {"newest": level.newest, "most": MOST_LINES}
        look.lines = [(row[0], ServedTurn(*row[1:])) for row in self._run(LINES, given)]
        for group in groups:
            look.keys[group] = self._further_turns(group, level.after.get(group.type, ""))
            look.places += self._jobs(PLACES, group, most=most)
            due_at, job_id = level.further.get(group.type, ("", ""))
            found = self._jobs(FURTHER, group, due_at=due_at, id=job_id, most=SLICE)
            look.further[group] = [((one.scheduled_at, one.id), key, one) for key, one in found]
        return look

    def _further_turns(self, group: Group, after: str) -> list[tuple[str, Head | None]]:
        found: list[tuple[str, Head | None]] = []
        now = to_text(self._session.now())
        statement = NEXT_TURN if after else FIRST_TURN
        while len(found) < SLICE and (rows := self._run(statement, {**group._asdict(), "after": after})):
            after, due_at, job_id = rows[0]
            found.append((after, (due_at, job_id) if due_at <= now else None))
            statement = NEXT_TURN
        return found

    def first(self, groups: Sequence[Group], most: Mapping[str, int]) -> list[tuple[str | None, Candidate]]:
        return [
            job
            for group in groups
            for key, count in most.items()
            for job in self._jobs(FIRST_OF_TURN, group, key=key, most=count)
        ]

    def _jobs(self, statement: str, group: Group, **more: Any) -> list[tuple[str | None, Candidate]]:
        rows = self._run(statement, {**group._asdict(), "now": to_text(self._session.now()), **more})
        return [
            (key, Candidate(group.priority, due_at, job_id, group.queue, group.type, keys))
            for due_at, job_id, keys, key in rows
        ]

    def keys_of(self, ids: Collection[str]) -> dict[str, str | None]:
        return {row[0]: row[1] for one in ids for row in self._run(KEY_OF, (one,))}

    def _run(self, statement: str, given: Any) -> list[tuple[Any, ...]]:
        with self._session.driver() as driver:
            return driver.execute(statement, given).fetchall()

    def add(self, lines: Sequence[ServedTurn]) -> None:
        now = to_text(self._session.now())
        with self._session.driver() as driver:
            driver.executemany(ADD, [(*line, now) for line in lines])

    def prune(self) -> None:
        now = self._session.now()
        self._run(PRUNE.format("<"), (to_text(now - timedelta(seconds=KEPT)),))
        self._run(PRUNE.format(">"), (to_text(now + timedelta(seconds=KEPT)),))
