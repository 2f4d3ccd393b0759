"""How Postgres is set up: settings, rights, sizes and indexes, as this session sees them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from jobqueue.backends.ports.setup import SetupReader
from jobqueue.backends.sql.ports.job_indexes import JOB_INDEXES, tables
from jobqueue.backends.sql.session import Session
from jobqueue.models.fields import as_utc
from jobqueue.records.setup import PostgresSetup, Setup

_SETTINGS = """
SELECT current_user, pg_backend_pid(),
       pg_is_in_recovery() OR current_setting('default_transaction_read_only')::bool,
       current_setting('default_transaction_isolation'),
       (SELECT setting::bigint FROM pg_settings WHERE name = 'statement_timeout'),
       current_setting('fsync')::bool, current_setting('synchronous_commit') <> 'off',
       current_setting('autovacuum')::bool AND current_setting('track_counts')::bool,
       pg_has_role(current_user, 'pg_read_all_stats', 'USAGE'),
       current_setting('max_connections')::int, (SELECT sum(numbackends)::int FROM pg_stat_database)
"""
_TABLE = """
SELECT NOT coalesce(reloptions @> ARRAY['autovacuum_enabled=false'], false),
       coalesce(array_to_string(reloptions, ',') LIKE '%%autovacuum_vacuum_scale_factor=%%', false),
       pg_relation_size(c.oid), pg_indexes_size(c.oid),
       coalesce(n_live_tup + n_dead_tup, 0), greatest(last_vacuum, last_autovacuum)
  FROM pg_class c LEFT JOIN pg_stat_user_tables s ON s.relid = c.oid WHERE c.oid = to_regclass('job_queue')
"""
_RIGHTS = """
SELECT one.verb || ' on ' || one.name FROM (
    SELECT name, verb FROM unnest(%s::text[]) AS name,
           unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS verb) AS one
 WHERE to_regclass(one.name) IS NOT NULL AND NOT has_table_privilege(to_regclass(one.name), one.verb)
 ORDER BY 1
"""
_INDEXES = """
SELECT relname, indisvalid FROM pg_index JOIN pg_class ON oid = indexrelid WHERE indrelid = to_regclass('job_queue')
"""


class PostgresSetupReader(SetupReader):
    """Reads the catalogue and the statistics of the server, at the same cost however large the tables are."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def read(self) -> Setup:
        indexes = dict(self._rows(_INDEXES))
        return Setup(
            postgres=self._postgres(),
            missing_indexes=tuple(sorted(JOB_INDEXES - indexes.keys())),
            invalid_indexes=tuple(sorted(name for name, is_valid in indexes.items() if not is_valid)),
        )

    def _postgres(self) -> PostgresSetup:
        role, pid, read_only, isolation, timeout, fsync, waits, vacuums, sees, most, used = self._rows(_SETTINGS)[0]
        none = (True, True, 0, 0, 0, None)
        vacuums_table, early, table_size, index_size, rows, vacuumed_at = next(iter(self._rows(_TABLE)), none)
        driver: Any = self._session.connection.connection
        return PostgresSetup(
            role=role,
            missing_rights=tuple(name for (name,) in self._rows(_RIGHTS, [tables()])),
            sees_others=sees,
            # A pooler tells its clients a process id of its own.
            has_proxy=driver.info.backend_pid != pid,
            is_read_only=read_only,
            isolation=isolation,
            statement_timeout=timedelta(milliseconds=timeout),
            has_fsync=fsync,
            waits_for_disk=waits,
            has_autovacuum=vacuums,
            vacuums_table=vacuums_table,
            vacuums_early=early,
            vacuumed_at=vacuumed_at and as_utc(vacuumed_at, self._session.connection),
            table_size=table_size,
            index_size=index_size,
            rows=rows,
            connections=used or 0,
            most_connections=most,
        )

    def _rows(self, statement: str, given: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._session.reading(), self._session.connection.cursor() as cursor:
            cursor.execute(statement, given)
            rows: list[tuple[Any, ...]] = cursor.fetchall()
            return rows
