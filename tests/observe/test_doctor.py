"""Tests of the doctor: each diagnosis is found where it belongs, and nowhere else, with a page that exists."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.core import checks
from django.db import connections
from django.db.migrations.recorder import MigrationRecorder

from jobqueue.cli.values import WORDING
from jobqueue.observe.doctor import Examination, diagnoses, examine
from jobqueue.observe.doctor.examination import Disk, kind_of
from jobqueue.observe.health import Level, Reading
from jobqueue.records.setup import PostgresSetup, Setup, SqliteSetup
from jobqueue.records.storage import HolderKind, SnapshotHolder, Storage
from jobqueue.version import __version__
from tests.cli.conftest import run, worker  # noqa: F401 - fixtures
from tests.docs.pages import ROOT

NOON = datetime(2026, 1, 16, 12, tzinfo=UTC)
GB, MB = 2**30, 2**20
SQLITE = SqliteSetup(
    journal_mode="wal",
    synchronous=1,
    busy_timeout=timedelta(seconds=5),
    checkpoint_pages=1000,
    file="/no/such/place/db.sqlite3",
    size=GB,
    unused=0,
)
POSTGRES = PostgresSetup(
    role="shop",
    missing_rights=(),
    sees_others=True,
    has_proxy=False,
    is_read_only=False,
    isolation="read committed",
    statement_timeout=timedelta(0),
    has_fsync=True,
    waits_for_disk=True,
    has_autovacuum=True,
    vacuums_table=True,
    vacuums_early=True,
    vacuumed_at=NOON,
    table_size=GB,
    index_size=GB,
    rows=1_000_000,
    connections=10,
    most_connections=100,
)
HELD = Storage(dead_rows=50_000, live_rows=100, holders=(SnapshotHolder(kind=HolderKind.SESSION, name="pg_dump"),))


def sqlite(**changes):
    return Examination(setup=Setup(sqlite=replace(SQLITE, **changes)))


def postgres(is_woken=True, **changes):
    return Examination(setup=Setup(postgres=replace(POSTGRES, **changes)), is_woken=is_woken)


NOTHING = {"depths": [], "pauses": [], "workers": []}

FORGED = {
    "database_away": Examination(away="connection refused"),
    "jobqueue.W001": Examination(checks=[checks.Warning("deferred", hint="Set it.", id="jobqueue.W001")]),
    "pending_migrations": Examination(pending=["jobqueue.0021_lane"]),
    "newer_schema": Examination(unknown=["jobqueue.0099_later", "jobqueue.0100_last"]),
    "indexes_missing": Examination(setup=Setup(missing_indexes=("job_queue_unique_key",))),
    "indexes_invalid": Examination(setup=Setup(invalid_indexes=("job_queue_unique_key",))),
    "disk_full": Examination(disks=[Disk("/srv", 50 * MB, 100 * GB), Disk("/tmp", 50 * MB, 100 * GB)]),  # noqa: S108
    "disk_low": Examination(disks=[Disk("/srv", 3 * GB, 100 * GB)]),
    "no_write_ahead_log": sqlite(journal_mode="delete"),
    "synchronous_off": sqlite(synchronous=0),
    "synchronous_full": sqlite(synchronous=2),
    "busy_timeout_short": sqlite(busy_timeout=timedelta(0)),
    "never_checkpointed": sqlite(checkpoint_pages=0),
    "file_half_empty": sqlite(unused=GB * 3 // 4),
    "file_on_network": Examination(
        setup=Setup(sqlite=SQLITE), disks=[Disk("/no/such/place", 50 * GB, 100 * GB, "nfs4")]
    ),
    "transaction_pooler": postgres(is_woken=False, has_proxy=True),
    "no_wake_ups": postgres(is_woken=False),
    "pooler": postgres(has_proxy=True),
    "rights_missing": postgres(missing_rights=("DELETE on job_queue",)),
    "sees_no_others": postgres(sees_others=False),
    "read_only": postgres(is_read_only=True),
    "strict_isolation": postgres(isolation="serializable"),
    "statement_timeout_short": postgres(statement_timeout=timedelta(seconds=1)),
    "fsync_off": postgres(has_fsync=False, waits_for_disk=False),
    "synchronous_commit_off": postgres(waits_for_disk=False),
    "no_autovacuum": postgres(vacuums_table=False, vacuums_early=False),
    "late_autovacuum": postgres(vacuums_early=False),
    "table_bloated": postgres(rows=10_000, index_size=0),
    "indexes_bloated": postgres(rows=10_000, table_size=0),
    "connections_used_up": postgres(connections=95),
    "snapshot_held": Examination(health=Reading(now=NOON, storage=HELD, **NOTHING)),
    "clocks_apart": Examination(health=Reading(now=NOON, skew=timedelta(minutes=1), **NOTHING)),
}
#: What a forged file on SQLite brings besides: no such file can be written.
BESIDES = {"file_not_writable"}


def codes(seen):
    return [one.code for one in diagnoses(seen, WORDING)]


@pytest.mark.parametrize("code", FORGED)
def test_a_diagnosis_names_what_is_wrong_a_remedy_and_a_page(code):
    found = [one for one in diagnoses(FORGED[code], WORDING) if one.code not in BESIDES]
    assert [one.code for one in found] == [code]
    (one,) = found
    assert one.text.endswith((".", "refused", "deferred"))
    assert one.remedy
    page, _, anchor = one.page.partition("#")
    text = (ROOT / page).read_text(encoding="utf-8")
    headings = [
        re.sub(r"[^\w -]", "", line.lstrip("# ").lower()).strip().replace(" ", "-")
        for line in text.splitlines()
        if line.startswith("#")
    ]
    assert not anchor or anchor in headings


def test_nothing_is_wrong_with_a_sound_setup():
    seen = [postgres(), Examination(setup=Setup(sqlite=replace(SQLITE, file="", journal_mode="memory")))]
    assert [codes(one) for one in seen] == [[], []]
    small = postgres(table_size=MB, index_size=MB, rows=0)
    assert codes(small) == []
    assert codes(postgres(rows=0, vacuumed_at=None)) == []  # nobody has counted the rows


def test_a_file_that_cannot_be_written_and_wake_ups_that_are_lost_are_told_on_sqlite(tmp_path):
    assert codes(sqlite()) == ["file_not_writable"] * 2  # the file and its folder
    (tmp_path / "db").touch()
    lost = Examination(setup=Setup(sqlite=replace(SQLITE, file=str(tmp_path / "db"))), is_woken=False)
    assert codes(lost) == ["no_wake_ups"]


def test_a_silenced_check_is_no_diagnosis(settings):
    settings.SILENCED_SYSTEM_CHECKS = ["jobqueue.W001"]
    assert codes(FORGED["jobqueue.W001"]) == []


def test_the_setup_of_the_database_is_read(queue, alias):
    seen = examine(queue, alias)
    assert (seen.away, seen.pending, seen.unknown, seen.is_woken) == ("", [], [], True)
    assert (seen.setup.missing_indexes, seen.setup.invalid_indexes) == ((), ())
    assert seen.disks
    assert all(disk.size >= disk.free > 0 for disk in seen.disks)
    if alias == "default":
        assert (seen.setup.sqlite.journal_mode, seen.setup.sqlite.checkpoint_pages) == ("wal", 1000)
        assert seen.setup.sqlite.size > 0
    else:
        setup = seen.setup.postgres
        assert (setup.missing_rights, setup.has_proxy, setup.isolation) == ((), False, "read committed")
        assert setup.index_size > 0
        assert setup.connections > 0


def test_a_missing_index_and_a_migration_of_a_newer_release_are_seen(queue, alias):
    with connections[alias].cursor() as cursor:
        cursor.execute("DROP INDEX job_queue_children")
    recorder = MigrationRecorder(connections[alias])
    recorder.record_applied("jobqueue", "0999_later")
    try:
        seen = examine(queue, alias)
        assert (seen.setup.missing_indexes, seen.unknown) == (("job_queue_children",), ["jobqueue.0999_later"])
    finally:
        recorder.record_unapplied("jobqueue", "0999_later")
        with connections[alias].cursor() as cursor:
            cursor.execute("CREATE INDEX job_queue_children ON job_queue (parent_id, id) WHERE parent_id IS NOT NULL")


@pytest.mark.postgres
@pytest.mark.parametrize("alias", ["postgres"], indirect=True)
def test_a_role_without_rights_and_a_snapshot_of_its_own_are_seen(queue, alias):
    with connections[alias].cursor() as cursor:
        cursor.execute("DROP ROLE IF EXISTS jobqueue_reader")
        cursor.execute("CREATE ROLE jobqueue_reader; GRANT SELECT ON ALL TABLES IN SCHEMA public TO jobqueue_reader")
        cursor.execute("SET ROLE jobqueue_reader; SET statement_timeout = 1000")
        try:
            setup = queue.setup.read().postgres
        finally:
            cursor.execute("RESET ROLE; RESET statement_timeout; DROP OWNED BY jobqueue_reader")
            cursor.execute("DROP ROLE jobqueue_reader")
    assert (setup.role, setup.sees_others) == ("jobqueue_reader", False)
    assert {"DELETE on job_queue", "INSERT on job_queue_attempt"} < set(setup.missing_rights)
    assert not any(one.startswith("SELECT") for one in setup.missing_rights)
    assert setup.statement_timeout == timedelta(seconds=1)


def test_the_command_tells_diagnoses_with_an_exit_code(run, worker, alias, settings):  # noqa: F811 - fixtures
    worker("old", version="0.0.9")
    worker("new", version=__version__)
    settings.JOBQUEUE = {**settings.JOBQUEUE, "DATABASE": alias}
    told = run("doctor", "--json").json
    (one,) = (one for one in told["diagnoses"] if one["code"] == "workers_differ")
    assert "0.0.9 (old)" in one["text"]
    said = run("doctor")
    assert said.code == {"notice": 0, "warning": 1, "error": 2}[told["level"]]
    assert "  docs/how-to/deployment.md#a-release" in said.out.splitlines()


def test_a_database_that_is_away_is_a_diagnosis(queue, alias, tmp_path):
    given = connections[alias].settings_dict
    before = dict(given)
    nowhere = {"NAME": str(tmp_path / "no" / "such.sqlite3")}
    connections[alias].close()
    given.update(nowhere if alias == "default" else {"HOST": "127.0.0.1", "PORT": "1"})
    try:
        seen = examine(queue, alias)
    finally:
        connections[alias].close()
        given.update(before)
    assert ("unable to open" if alias == "default" else "connection") in seen.away
    assert diagnoses(seen, WORDING)[0].level is Level.ERROR


def test_the_kind_of_a_file_system_is_told(tmp_path):
    assert kind_of(tmp_path / "not" / "there") == kind_of(tmp_path) != ""
