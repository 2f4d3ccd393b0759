"""Tests of the migration, which makes the whole schema on both databases as the models declare it."""

from __future__ import annotations

from importlib.resources import files

import pytest
from django.core.management import call_command
from django.db import connections
from django.db.migrations import AddConstraint, AddIndex, RunSQL
from django.db.migrations.loader import MigrationLoader
from django.db.models import CheckConstraint, JSONField, UniqueConstraint

from jobqueue.models import Job
from jobqueue.models.fields import MomentField, OneType
from jobqueue.models.search_index import SearchIndex
from jobqueue.testing.contract.harness import finish, put, take_one
from tests import conftest
from tests.conftest import make_sql_backend

TABLES = {model._meta.db_table: model for model in conftest.TABLES}

CANONICAL = [
    "id",
    "type",
    "status",
    "priority",
    "scheduled_at",
    "lease_owner",
    "lease_until",
    "payload",
    "idempotency_key",
    "attempts",
    "max_retries",
    "error",
    "created_at",
    "updated_at",
    "started_at",
    "completed_at",
    "result",
]
BESIDE = [
    "queue",
    "fence",
    "unique_key",
    "tenant",
    "workspace",
    "parallel",
    "concurrency_key",
    "parent_id",
    "schedule_id",
    "slot_at",
    "payload_version",
    "timeout",
    "expires_at",
    "progress",
    "cancel_requested_at",
    "crash_count",
    "end_reason",
    "error_fingerprint",
    "context",
    "exact_priority",
    "completed_by",
    "lane",
    "lane_position",
    "fair_key",
]
DEFAULTS = {
    "status": "queued",
    "priority": "5",
    "attempts": "0",
    "max_retries": "3",
    "queue": "default",
    "fence": "0",
    "parallel": "1",
    "payload_version": "1",
    "crash_count": "0",
}
#: What an INSERT has to give: the canonical statement gives no more.
GIVEN = {"id", "type", "scheduled_at", "payload", "created_at", "updated_at"}


@pytest.fixture
def connection(alias):
    return connections[alias]


def rows(connection, statement):
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall()


def described(connection, table="job_queue"):
    with connection.cursor() as cursor:
        return connection.introspection.get_table_description(cursor, table)


def constraints(connection, table):
    with connection.cursor() as cursor:
        return connection.introspection.get_constraints(cursor, table)


def bare(default):
    """Read a default as both databases would write it."""
    return default and default.split("::")[0].strip("'").replace("true", "1")


def test_the_migrations_make_every_table():
    names = [file.name for file in files("jobqueue.migrations").iterdir() if file.name[0].isdigit()]
    loader = MigrationLoader(None)
    operations = [
        operation
        for name in sorted(names)
        for operation in loader.get_migration("jobqueue", name.removesuffix(".py")).operations
    ]
    options = [getattr(operation, "options", {}) for operation in operations]
    made = {one["db_table"] for one in options if isinstance(one, dict) and "db_table" in one}
    assert made == set(TABLES)


def test_no_index_is_made_outside_the_models():
    migration = MigrationLoader(None).get_migration("jobqueue", "0001_initial")
    assert not [one for one in migration.operations if isinstance(one, (RunSQL, AddIndex, AddConstraint))]


def test_no_migration_is_missing(databases):
    call_command("makemigrations", "jobqueue", check=True, dry_run=True, verbosity=0)


def test_the_migration_goes_back_and_forth(connection, alias, clock):
    before = {table: described(connection, table) for table in TABLES}
    call_command("migrate", "jobqueue", "zero", database=alias, verbosity=0)
    try:
        assert [name for name in connection.introspection.table_names() if name.startswith("job_queue")] == []
    finally:
        call_command("migrate", "jobqueue", database=alias, verbosity=0)
    assert {table: described(connection, table) for table in TABLES} == before
    backend = make_sql_backend(alias, clock)
    put(backend)
    assert finish(backend, take_one(backend))


def test_the_columns_are_the_canonical_ones_and_then_ours(connection):
    assert [column.name for column in described(connection)] == CANONICAL + BESIDE


def test_the_database_itself_knows_the_defaults(connection):
    assert {column.name: bare(column.default) for column in described(connection) if column.default} == DEFAULTS


def test_all_a_foreign_insert_leaves_out_may_be_null_or_has_a_default(connection):
    demanded = {column.name for column in described(connection) if not column.null_ok and column.default is None}
    assert demanded == GIVEN


def test_strings_are_bounded(connection):
    unbounded = {
        field.column
        for field in Job._meta.get_fields()
        if hasattr(field, "column") and field.get_internal_type() == "CharField" and not field.max_length
    }
    lengths = {column.name: column.display_size for column in described(connection)}
    keys = [lengths[name] for name in ("idempotency_key", "unique_key", "concurrency_key")]
    assert (unbounded, keys) == (set(), [255, 255, 255])


@pytest.mark.parametrize("table", TABLES)
def test_every_index_and_constraint_is_in_meta(connection, table):
    meta = TABLES[table]._meta
    named = {one.name: set(one.fields) for one in meta.indexes}
    named |= {one.name: set(one.fields) for one in meta.constraints if isinstance(one, UniqueConstraint)}
    named |= {one.name: None for one in meta.constraints if isinstance(one, CheckConstraint)}
    found = {name: one for name, one in constraints(connection, table).items() if not is_a_fields_own(one, name)}
    of_texts = found.pop("job_queue_error_texts", None)  # of a function, which Meta doesn't know
    assert (of_texts is not None) == (connection.vendor == "postgresql" and table == "job_queue")
    assert found.keys() == named.keys()
    columns = {
        name: [meta.get_field(field).column for field in fields]
        for one in (*meta.indexes, *meta.constraints)
        if (fields := getattr(one, "fields", None)) and (name := one.name)
    }
    for one in meta.indexes:
        columns[one.name] += ["error"] if isinstance(one, SearchIndex) and connection.vendor == "sqlite" else []
    assert {name: found[name]["columns"] for name in columns} == columns


def is_a_fields_own(constraint, name):
    """Say whether a field makes it: the primary key, the bounds of moments, and on SQLite their shape and JSON's."""
    by_field = name.startswith("__unnamed") or name.endswith(("_at_check", "_until_check", "_since_check"))
    return constraint["primary_key"] or (constraint["check"] and by_field)


@pytest.mark.sqlite
@pytest.mark.parametrize("table", TABLES)
def test_each_moment_each_json_and_each_column_of_one_type_is_checked_on_sqlite(databases, table):
    found = [one for name, one in constraints(connections["default"], table).items() if name.startswith("__unnamed")]
    checked = {one["columns"][0] for one in found}
    fields = TABLES[table]._meta.concrete_fields
    assert checked == {field.column for field in fields if isinstance(field, (MomentField, JSONField, OneType))}


INDEXES = {
    "sqlite": "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = 'job_queue' AND sql IS NOT NULL",
    "postgresql": "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'job_queue'",
}


def test_every_index_but_the_key_covers_only_some_rows(connection):
    found = dict(rows(connection, INDEXES[connection.vendor]))
    assert [name for name, text in found.items() if " WHERE " not in text and name != "job_queue_pkey"] == []


TRIGGERS = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'trigger'",
    "postgresql": "SELECT tgname FROM pg_trigger WHERE tgrelid::regclass::text LIKE 'job_queue%'",
}


def test_there_are_no_triggers(connection):
    assert rows(connection, TRIGGERS[connection.vendor]) == []


@pytest.mark.postgres
def test_there_are_no_indexes_for_like_on_postgres(databases):
    found = rows(
        connections["postgres"], "SELECT indexname, indexdef FROM pg_indexes WHERE tablename LIKE 'job_queue%'"
    )
    assert [name for name, text in found if name.endswith("_like") or "_pattern_ops" in text] == []


@pytest.mark.postgres
def test_postgres_vacuums_the_table_early(databases):
    ((options,),) = rows(connections["postgres"], "SELECT reloptions FROM pg_class WHERE relname = 'job_queue'")
    assert sorted(options) == [
        "autovacuum_analyze_scale_factor=0.05",
        "autovacuum_vacuum_cost_delay=0",
        "autovacuum_vacuum_scale_factor=0.02",
    ]


@pytest.mark.postgres
def test_moments_and_json_have_their_own_types_on_postgres(databases):
    found = rows(
        connections["postgres"],
        "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'job_queue'",
    )
    expected = {
        field.column: "timestamp with time zone" for field in Job._meta.fields if isinstance(field, MomentField)
    }
    expected |= {field.column: "jsonb" for field in Job._meta.fields if isinstance(field, JSONField)}
    assert {name: kind for name, kind in found if name in expected} == expected


def test_no_foreign_key_ties_the_history_to_its_job(connection):
    assert [one for one in constraints(connection, "job_queue_attempt").values() if one["foreign_key"]] == []
