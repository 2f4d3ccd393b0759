"""How a database is set up, as far as it matters to the queue."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteSetup:
    """The pragmas of a connection, and the database's file, which is empty for one in memory. Sizes are in bytes."""

    journal_mode: str
    synchronous: int
    busy_timeout: timedelta
    checkpoint_pages: int
    file: str
    size: int
    unused: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresSetup:
    """The settings, rights and sizes that a session sees. Sizes are in bytes, and rows are the server's estimate.

    ``missing_rights`` are texts such as ``DELETE on job_queue``. ``has_proxy`` says that something between this process
    and the server answers in its place.
    """

    role: str
    missing_rights: tuple[str, ...]
    sees_others: bool
    has_proxy: bool
    is_read_only: bool
    isolation: str
    statement_timeout: timedelta
    has_fsync: bool
    waits_for_disk: bool
    has_autovacuum: bool
    vacuums_table: bool
    vacuums_early: bool
    vacuumed_at: datetime | None
    table_size: int
    index_size: int
    rows: int
    connections: int
    most_connections: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The setup of a database, and its indexes of jobs. What a backend doesn't know stays empty."""

    sqlite: SqliteSetup | None = None
    postgres: PostgresSetup | None = None
    missing_indexes: tuple[str, ...] = ()
    invalid_indexes: tuple[str, ...] = ()
