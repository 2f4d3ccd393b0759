"""Diagnoses of Postgres: a pooler in between, rights, settings, autovacuum and bloat."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from jobqueue.observe.doctor.diagnosis import Diagnosis, megabytes
from jobqueue.observe.doctor.examination import Examination
from jobqueue.observe.health import Level
from jobqueue.records.setup import PostgresSetup

#: A shorter limit may end a sweep or a search on a busy server.
SHORTEST_STATEMENT = timedelta(seconds=5)
#: Smaller tables are never called bloated. A row takes at most some 2 KB in the table, and some 600 bytes in indexes.
SMALL = 64 * 2**20
LARGEST_ROW, LARGEST_ENTRIES = 4_096, 2_048
#: The share of connections from which on there is hardly one left.
NEARLY_ALL = 0.9
_SHOWN = 8
_VACUUM = "docs/explanation/sizing.md#vacuum"
_POOLERS = "docs/how-to/postgres.md#poolers"


def behind_pooler(seen: Examination) -> Iterator[Diagnosis]:
    """Diagnose a proxy or pooler, and whether it keeps wake-ups from workers."""
    setup = seen.setup.postgres
    if setup is None:
        return
    if seen.is_woken is False:
        yield Diagnosis(
            Level.WARNING,
            "transaction_pooler" if setup.has_proxy else "no_wake_ups",
            "Notifications don't arrive"
            + (", as behind a transaction pooler" if setup.has_proxy else "")
            + ": workers find new jobs only by polling, and prepare no statements.",
            "Give workers a direct connection. Otherwise set --poll-interval 0.2, and DISABLE_SERVER_SIDE_CURSORS.",
            _POOLERS,
        )
    elif setup.has_proxy:
        yield Diagnosis(
            Level.NOTICE,
            "pooler",
            "A pooler or proxy is between this process and the server. Notifications arrive, so it pools sessions.",
            "Leave it, or give workers a direct connection. They have few connections and keep them open.",
            _POOLERS,
        )


def rights_missing(seen: Examination) -> Iterator[Diagnosis]:
    """Diagnose rights that the role doesn't have."""
    setup = seen.setup.postgres
    if setup and setup.missing_rights:
        more = ", …" if len(setup.missing_rights) > _SHOWN else ""
        yield Diagnosis(
            Level.ERROR,
            "rights_missing",
            f"The role {setup.role} doesn't have all rights: {', '.join(setup.missing_rights[:_SHOWN])}{more}.",
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA … TO {setup.role}, as the tables' owner.",
            "docs/how-to/postgres.md",
        )


def sees_no_others(seen: Examination) -> Iterator[Diagnosis]:
    """Diagnose a role that can't see who holds an old snapshot."""
    setup = seen.setup.postgres
    if setup and not setup.sees_others:
        yield Diagnosis(
            Level.NOTICE,
            "sees_no_others",
            f"The role {setup.role} sees only its own sessions: 'jobqueue status' can't name another role that holds "
            "an old snapshot.",
            f"GRANT pg_read_all_stats TO {setup.role}.",
            "docs/explanation/old-snapshots.md#who-holds-it",
        )


def read_only(seen: Examination) -> Iterator[Diagnosis]:
    """Diagnose a standby, or a role that can't write."""
    setup = seen.setup.postgres
    if setup and setup.is_read_only:
        yield Diagnosis(
            Level.ERROR,
            "read_only",
            "The database is read-only, as a standby is: no job can be enqueued or claimed.",
            "Point DATABASES at the primary server, and set default_transaction_read_only to off.",
            "docs/how-to/postgres.md",
        )


def strict_isolation(seen: Examination) -> Iterator[Diagnosis]:
    """Diagnose an isolation level in which claims fail that others overtake."""
    setup = seen.setup.postgres
    if setup and setup.isolation in ("serializable", "repeatable read"):
        yield Diagnosis(
            Level.WARNING,
            "strict_isolation",
            f"Transactions are {setup.isolation} by default: claims of several workers make each other fail.",
            "Set default_transaction_isolation to 'read committed' for the role or in OPTIONS['isolation_level'].",
            "docs/how-to/postgres.md#several-workers",
        )


def short_statements(seen: Examination) -> Iterator[Diagnosis]:
    """Diagnose a limit that may end the queue's own statements."""
    setup = seen.setup.postgres
    if setup and timedelta(0) < setup.statement_timeout < SHORTEST_STATEMENT:
        yield Diagnosis(
            Level.WARNING,
            "statement_timeout_short",
            f"Statements are ended after {setup.statement_timeout.total_seconds():g} s, sweeps and prunes among them.",
            "Set statement_timeout to 5 seconds or more for the role of the workers.",
            "docs/how-to/postgres.md#a-server-that-vanishes",
        )


def not_durable(seen: Examination) -> Iterator[Diagnosis]:
    """Diagnose a server that doesn't wait for the disk."""
    setup = seen.setup.postgres
    if setup and not setup.has_fsync:
        yield Diagnosis(
            Level.WARNING,
            "fsync_off",
            "The server doesn't write to the disk in order (fsync=off): a crash can corrupt the database.",
            "Set fsync to on.",
            "docs/explanation/guarantees.md",
        )
    elif setup and not setup.waits_for_disk:
        yield Diagnosis(
            Level.NOTICE,
            "synchronous_commit_off",
            "Commits don't wait for the disk (synchronous_commit=off): a crash can lose the jobs of the last moments.",
            "Set synchronous_commit to on for sessions that enqueue jobs.",
            "docs/explanation/guarantees.md",
        )


def no_autovacuum(seen: Examination) -> Iterator[Diagnosis]:
    """Diagnose a job table that isn't vacuumed, or too late."""
    setup = seen.setup.postgres
    if setup and not (setup.has_autovacuum and setup.vacuums_table):
        where = "for the table job_queue" if setup.has_autovacuum else "on this server, or its statistics are"
        yield Diagnosis(
            Level.WARNING,
            "no_autovacuum",
            f"Autovacuum is off {where}: dead rows stay, and each job leaves some.",
            "Set autovacuum and track_counts to on, and ALTER TABLE job_queue RESET (autovacuum_enabled).",
            _VACUUM,
        )
    elif setup and not setup.vacuums_early:
        yield Diagnosis(
            Level.NOTICE,
            "late_autovacuum",
            "The table job_queue has lost the settings of its migration that have autovacuum come early.",
            "ALTER TABLE job_queue SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0).",
            _VACUUM,
        )


def bloated(seen: Examination) -> Iterator[Diagnosis]:
    """Diagnose a table or indexes that are mostly empty. The server must have counted the rows."""
    setup = seen.setup.postgres
    if setup is None or setup.vacuumed_at is None:
        return
    rows = max(setup.rows, 1)
    if setup.table_size > max(SMALL, rows * LARGEST_ROW):
        yield _bloat("table_bloated", "table", setup.table_size, setup, "VACUUM FULL job_queue, while no worker runs")
    if setup.index_size > max(SMALL, rows * LARGEST_ENTRIES):
        yield _bloat("indexes_bloated", "indexes", setup.index_size, setup, "REINDEX TABLE CONCURRENTLY job_queue")


def _bloat(code: str, what: str, size: int, setup: PostgresSetup, remedy: str) -> Diagnosis:
    return Diagnosis(
        Level.WARNING,
        code,
        f"The {what} of job_queue take {megabytes(size)} for {setup.rows:,} rows, so most of that is empty.",
        f"{remedy}; or let new jobs fill it.",
        _VACUUM,
    )


def connections_used_up(seen: Examination) -> Iterator[Diagnosis]:
    """Diagnose a server with hardly a connection left."""
    setup = seen.setup.postgres
    if setup and setup.connections >= NEARLY_ALL * setup.most_connections:
        yield Diagnosis(
            Level.WARNING,
            "connections_used_up",
            f"{setup.connections:,} of the server's {setup.most_connections:,} connections are in use.",
            "Lower CONN_MAX_AGE or the number of slots, use a pooler for web processes, or raise max_connections.",
            "docs/how-to/postgres.md#connections",
        )


DIAGNOSES = (
    read_only,
    rights_missing,
    behind_pooler,
    strict_isolation,
    short_statements,
    not_durable,
    no_autovacuum,
    bloated,
    connections_used_up,
    sees_no_others,
)
