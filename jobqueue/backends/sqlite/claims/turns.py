"""The jobs of fair queues on SQLite, where the claim's transaction holds the only write lock."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from sqlite3 import Connection
from typing import Any

from jobqueue.backends.sql.claims.crowd import Group
from jobqueue.backends.sql.claims.turns import FURTHER, KEPT, MOST_LINES, SLICE, FairClaims, Level, Look
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
FURTHER_JOBS = (
    f"SELECT {_COLUMNS} {_OF_GROUP} AND scheduled_at <= :now AND (scheduled_at, id) > (:due_at, :id) "
    "ORDER BY scheduled_at, id LIMIT :most"
)
KEY_OF = "SELECT id, fair_key FROM job_queue WHERE id = ?"
ADD = "INSERT INTO job_queue_turn (queue, priority, key, count, finish, clock, served_at) VALUES (?, ?, ?, ?, ?, ?, ?)"
# The oldest lines have the lowest numbers. A line of the future was stored while the clock was wrong.
PRUNE = (
    "DELETE FROM job_queue_turn WHERE id IN (SELECT id FROM "
    "(SELECT id, served_at FROM job_queue_turn ORDER BY id LIMIT 5000) WHERE served_at < ? OR served_at > ?)"
)


class SqliteFairClaims(FairClaims):
    """Reads through the driver."""

    def __init__(self, session: SqliteSession) -> None:
        super().__init__()
        self._session = session

    def look(self, groups: Sequence[Group], level: Level, most: int) -> Look:
        look, now = Look(), to_text(self._session.now())
        of_level = {"queue": groups[0].queue, "priority": groups[0].priority}
        with self._session.driver() as driver:
            with self._session.any_text():  # another program's
                lines = driver.execute(LINES, of_level | {"newest": level.newest, "most": MOST_LINES}).fetchall()
            look.lines = [(row[0], ServedTurn(*row[1:])) for row in lines]
            for group in groups:
                given = {**group._asdict(), "now": now, "most": most, "after": level.after.get(group.type, "")}
                look.keys[group] = _further_turns(driver, given)
                look.places += _jobs(driver, PLACES, group, given)
                if level.goes_further:
                    due_at, job_id = level.further.get(group.type, ("", ""))
                    given |= {"due_at": due_at, "id": job_id, "most": FURTHER}
                    found = _jobs(driver, FURTHER_JOBS, group, given)
                    look.further[group] = [((one.scheduled_at, one.id), key, one) for key, one in found]
        return look

    def first(self, groups: Sequence[Group], most: Mapping[str, int]) -> list[tuple[str | None, Candidate]]:
        found: list[tuple[str | None, Candidate]] = []
        with self._session.driver() as driver:
            for group in groups:
                given = {**group._asdict(), "now": to_text(self._session.now())}
                for key, count in most.items():
                    found += _jobs(driver, FIRST_OF_TURN, group, {**given, "key": key, "most": count})
        return found

    def keys_of(self, ids: Collection[str]) -> dict[str, str | None]:
        with self._session.driver() as driver:
            return {row[0]: row[1] for one in ids for row in driver.execute(KEY_OF, (one,))}

    def add(self, lines: Sequence[ServedTurn]) -> None:
        now = to_text(self._session.now())
        with self._session.driver() as driver:
            driver.executemany(ADD, [(*line, now) for line in lines])

    def prune(self) -> None:
        now = self._session.now()
        with self._session.driver() as driver:
            driver.execute(PRUNE, (to_text(now - timedelta(seconds=KEPT)), to_text(now + timedelta(seconds=KEPT))))


def _further_turns(driver: Connection, given: dict[str, Any]) -> list[tuple[str, Head | None]]:
    """Go from turn to turn, and return each with its first job, if that is due."""
    found: list[tuple[str, Head | None]] = []
    statement, after = NEXT_TURN if given["after"] else FIRST_TURN, given["after"]
    while len(found) < SLICE and (row := driver.execute(statement, {**given, "after": after}).fetchone()):
        statement, after = NEXT_TURN, row[0]
        found.append((after, row[1:] if row[1] <= given["now"] else None))
    return found


def _jobs(
    driver: Connection, statement: str, group: Group, given: dict[str, Any]
) -> list[tuple[str | None, Candidate]]:
    rows = driver.execute(statement, given).fetchall()
    return [
        (key, Candidate(group.priority, due_at, job_id, group.queue, group.type, keys))
        for due_at, job_id, keys, key in rows
    ]
