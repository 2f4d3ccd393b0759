"""The storing of drafts on SQLite."""

from __future__ import annotations

from collections.abc import Sequence

from jobqueue.backends.sql.drafts import Drafts
from jobqueue.backends.sqlite import statements
from jobqueue.backends.sqlite.session import SqliteSession
from jobqueue.records import Draft


class SqliteDrafts(Drafts):
    """Inserts drafts one by one, through the driver. There are no round trips to a server that a bulk could save."""

    _session: SqliteSession

    def insert(self, draft: Draft) -> bool:
        values = statements.values_to_insert(draft, self._session.now())
        connection = self._session.connection
        # A wrapper or log of the application wants to see the statement, or a test forbids database access.
        if connection.execute_wrappers or connection.queries_logged or "cursor" in vars(connection):
            with connection.cursor() as cursor:
                cursor.execute(statements.INSERT, values)
                return bool(cursor.rowcount == 1)
        with self._session.driver() as driver:
            return driver.execute(statements.INSERT_RAW, values).rowcount == 1

    def insert_all(self, drafts: Sequence[Draft]) -> set[str]:
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
