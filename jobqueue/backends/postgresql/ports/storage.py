"""What Postgres keeps under old snapshots, and who holds them."""

from __future__ import annotations

from jobqueue.backends.ports import StorageReader
from jobqueue.backends.sql.session import Session
from jobqueue.models.fields import as_utc
from jobqueue.records.storage import HolderKind, SnapshotHolder, Storage

#: How many holders are named, the oldest first.
MOST_NAMED = 5

# A snapshot of another database holds nothing here, and neither does a vacuum. A role without pg_read_all_stats sees
# only its own sessions.
_HOLDERS = f"""
SELECT kind, name, pid, state, since FROM (
    SELECT 'session' AS kind, application_name AS name, pid, state, xact_start AS since,
           age(coalesce(backend_xmin, backend_xid)) AS age
      FROM pg_stat_activity
     WHERE backend_type = 'client backend' AND datname = current_database() AND pid <> pg_backend_pid()
       AND coalesce(backend_xmin, backend_xid) IS NOT NULL
    UNION ALL
    SELECT 'replica', application_name, pid, state, NULL, age(backend_xmin)
      FROM pg_stat_replication WHERE backend_xmin IS NOT NULL
    UNION ALL
    SELECT 'replication slot', slot_name, active_pid, CASE WHEN active THEN 'active' ELSE 'inactive' END, NULL,
           age(xmin)
      FROM pg_replication_slots WHERE xmin IS NOT NULL
    UNION ALL
    SELECT 'prepared transaction', gid, NULL, '', prepared, age(transaction)
      FROM pg_prepared_xacts WHERE database = current_database()
) AS holders
 ORDER BY age DESC, since LIMIT {MOST_NAMED}
"""
_ROWS = "SELECT n_dead_tup, n_live_tup FROM pg_stat_user_tables WHERE relid = 'job_queue'::regclass"


class PostgresStorageReader(StorageReader):
    """Reads the statistics of the server. They cost the same however large the tables are."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def read(self) -> Storage:
        with self._session.reading(), self._session.connection.cursor() as cursor:
            cursor.execute(_HOLDERS)
            holders = cursor.fetchall()
            cursor.execute(_ROWS)
            dead_rows, live_rows = next(iter(cursor.fetchall()), (0, 0))
        return Storage(
            holders=tuple(
                SnapshotHolder(
                    kind=HolderKind(kind),
                    name=name or "",
                    pid=pid,
                    state=state or "",
                    since=since and as_utc(since, self._session.connection),
                )
                for kind, name, pid, state, since in holders
            ),
            dead_rows=dead_rows,
            live_rows=live_rows,
        )
