"""The storing of drafts on SQLite."""

from __future__ import annotations

from collections.abc import Sequence

from jobqueue.backends.sql.drafts import Drafts, Holder
from jobqueue.backends.sql.repeat_statements import let_through, move_instead
from jobqueue.backends.sqlite import statements
from jobqueue.backends.sqlite.session import SqliteSession
from jobqueue.clock import to_text
from jobqueue.records import Draft

#: The time of a moved job: never earlier than before, and not past the longest wait since it was enqueued.
_LATEST = "strftime('%%Y-%%m-%%dT%%H:%%M:%%f000Z', job_queue.created_at, %s)"
_DUE_AT = f"max(job_queue.scheduled_at, min(excluded.scheduled_at, coalesce({_LATEST}, excluded.scheduled_at)))"
_INSERT, _INSERT_IN_LANE = (
    one.removesuffix("ON CONFLICT DO NOTHING") for one in (statements.INSERT, statements.INSERT_IN_LANE)
)
_INSTEAD = [move_instead(_DUE_AT, replace_payload=replaces) for replaces in (False, True)]
_MOVE, _MOVE_NEWEST = (_INSERT + one for one in _INSTEAD)
_MOVE_IN_LANE, _MOVE_NEWEST_IN_LANE = (_INSERT_IN_LANE + one for one in _INSTEAD)
_LET_THROUGH = let_through("%s", "%s")


class SqliteDrafts(Drafts):
    """Inserts drafts one by one, through the driver. There are no round trips to a server that a bulk could save."""

    _session: SqliteSession

    def insert(self, draft: Draft) -> bool:
        if draft.lane is not None:
            return self._insert_in_lane(draft)
        values = statements.values_to_insert(draft, self._session.now())
        connection = self._session.connection
        # A wrapper or log of the application wants to see the statement, or a test forbids database access.
        if connection.execute_wrappers or connection.queries_logged or "cursor" in vars(connection):
            with connection.cursor() as cursor:
                cursor.execute(statements.INSERT, values)
                return bool(cursor.rowcount == 1)
        with self._session.driver() as driver:
            return driver.execute(statements.INSERT_RAW, values).rowcount == 1

    def _insert_in_lane(self, draft: Draft) -> bool:
        with self._session.connection.cursor() as cursor:
            cursor.execute(statements.INSERT_IN_LANE, statements.values_in_lane(draft, self._session.now()))
            return bool(cursor.rowcount == 1)

    def insert_or_move(self, draft: Draft) -> Holder | None:
        seconds = (draft.max_wait or draft.wait).total_seconds()
        if draft.lane is None:
            values = statements.values_to_insert(draft, self._session.now())
            statement = _MOVE_NEWEST if draft.replace_payload else _MOVE
        else:
            values = statements.values_in_lane(draft, self._session.now())
            statement = _MOVE_NEWEST_IN_LANE if draft.replace_payload else _MOVE_IN_LANE
        rows = self._execute(statement, *values, f"{seconds:+.3f} seconds")
        return next(iter(rows), None)

    def let_through(self, draft: Draft) -> bool:
        now = self._session.now()
        until = now + (draft.throttle or draft.wait)
        parameters = (draft.unique_key, draft.type, draft.id, to_text(until), to_text(now))
        return bool(self._execute(_LET_THROUGH, *parameters))

    def insert_all(self, drafts: Sequence[Draft]) -> set[str]:
        if drafts[0].lane is not None:
            return {one.id for one in drafts if self._insert_in_lane(one)}
        now = self._session.now()
        rows = [statements.values_to_insert(draft, now) for draft in drafts]
        with self._session.driver() as driver:
            driver.execute("SAVEPOINT jobqueue_bulk")
            if driver.executemany(statements.INSERT_RAW, rows).rowcount < len(rows):
                # Some keys are taken. Only single inserts show which.
                driver.execute("ROLLBACK TO jobqueue_bulk")
                rows = [row for row in rows if driver.execute(statements.INSERT_RAW, row).rowcount == 1]
            driver.execute("RELEASE jobqueue_bulk")
        return {row[0] for row in rows}
