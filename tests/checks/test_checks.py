"""Tests of the system checks: every id, with a hint that says what to do."""

from __future__ import annotations

import sqlite3
import sys

import pytest
from django.core.checks import ERROR, WARNING, run_checks
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db import connections

from jobqueue import conf
from jobqueue.checks import check_settings
from jobqueue.checks.sqlite import OLDEST_SQLITE, WAL_RESET_FIXED, check_sqlite_release

GOOD = {
    "transaction_mode": "IMMEDIATE",
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
}


@pytest.fixture(autouse=True)
def _new_sqlite(monkeypatch):
    """Let the library's version be one without known bugs, whichever is installed."""
    monkeypatch.setattr(sqlite3, "sqlite_version_info", WAL_RESET_FIXED)


@pytest.fixture
def add_database(monkeypatch):
    """A function that adds a database, never opened, to those of the settings."""
    added = []

    def add(alias, engine="django.db.backends.sqlite3", **values):
        given = connections.settings["default"] | {"ENGINE": engine, "NAME": "never opened", "OPTIONS": {}} | values
        monkeypatch.setitem(connections.settings, alias, given)
        added.append(alias)

    yield add
    for alias in added:
        if alias in {one.alias for one in connections.all(initialized_only=True)}:
            del connections[alias]


def _ids():
    return [message.id for message in check_settings()]


def _only(check_id):
    """Return the one message with an id."""
    (message,) = (one for one in check_settings() if one.id == check_id)
    return message


def test_good_settings_give_no_message(settings):
    settings.JOBQUEUE = {"DATABASE": "default", "MAX_PAYLOAD_BYTES": 1_000, "BUSY_TIMEOUT": 5, "BACKEND": None}
    assert check_settings() == []


def test_no_settings_are_good_settings(settings):
    del settings.JOBQUEUE
    assert check_settings() == []


def test_every_default_is_accepted_by_its_own_key():
    assert [key for key, setting in conf.SETTINGS.items() if not setting.accepts(setting.default)] == []


def test_the_checks_run_with_djangos(settings, databases):
    settings.JOBQUEUE = {"DATABSE": "default"}
    assert "jobqueue.E002" in [message.id for message in run_checks()]
    with pytest.raises(SystemCheckError, match=r"jobqueue\.E002"):
        call_command("check")


def test_e003_names_each_mistake_in_the_options_of_queues(settings):
    settings.JOBQUEUE = {"QUEUES": {"mail": {"capcity": 5}, "import.*": {"capacity": "many"}}}
    first, second = (one for one in check_settings() if one.id == "jobqueue.E003")
    assert "JOBQUEUE['QUEUES']['mail'] has the unknown option 'capcity'" in first.msg
    assert first.hint == "Did you mean 'capacity'?"
    assert "JOBQUEUE['QUEUES']['import.*']['capacity'] must be None or a whole number of jobs" in second.msg


@pytest.mark.parametrize(
    ("target", "why"),
    [("nowhere", "not in DATABASES"), ("default", "already"), ("oracle", "which is oracle"), ("other", "BACKEND")],
)
def test_e011_jobs_that_cannot_be_relayed(settings, add_database, monkeypatch, target, why):
    backend = "jobqueue.backends.memory.MemoryBackend" if target == "other" else None
    if target in ("oracle", "other"):
        add_database(target)
        monkeypatch.setattr(connections[target], "vendor", "oracle" if target == "oracle" else "sqlite", raising=False)
    settings.JOBQUEUE = {"RELAY_TO": target, "BACKEND": backend}
    message = _only("jobqueue.E011")
    assert why in message.msg
    assert message.hint


def test_a_shared_database_to_relay_to_gives_no_message(settings, add_database):
    add_database("shared")
    settings.JOBQUEUE = {"RELAY_TO": "shared"}
    assert check_settings() == []


@pytest.mark.parametrize("value", [["DATABASE"], "default", None, 7])
def test_e001_settings_that_are_no_dict(settings, value):
    settings.JOBQUEUE = value
    message = _only("jobqueue.E001")
    assert type(value).__name__ in message.msg
    assert "{...}" in message.hint


@pytest.mark.parametrize(
    ("typo", "nearest"),
    [
        ("DATABSE", "DATABASE"),
        ("MAX_PAYLOAD_BYTE", "MAX_PAYLOAD_BYTES"),
        ("MAX_PAYLOAD_SIZE", "MAX_PAYLOAD_BYTES"),
        ("BUSY_TIMOUT", "BUSY_TIMEOUT"),
        ("RUNTIMEDIR", "RUNTIME_DIR"),
        ("BACKENDS", "BACKEND"),
        ("database", "DATABASE"),
    ],
)
def test_e002_an_unknown_key_suggests_the_nearest(settings, typo, nearest):
    settings.JOBQUEUE = {typo: 1}
    message = _only("jobqueue.E002")
    assert repr(typo) in message.msg
    assert message.hint == f"Did you mean {nearest!r}?"


@pytest.mark.parametrize("key", ["XYZZY", 7, None])
def test_e002_an_unknown_key_like_none_lists_those_there_are(settings, key):
    settings.JOBQUEUE = {key: 1}
    message = _only("jobqueue.E002")
    assert repr(key) in message.msg
    assert all(known in message.hint for known in conf.SETTINGS)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("DATABASE", ""),
        ("DATABASE", 7),
        ("BACKEND", ""),
        ("MAX_PAYLOAD_BYTES", 0),
        ("MAX_PAYLOAD_BYTES", 1.5),
        ("MAX_PAYLOAD_BYTES", "1 MB"),
        ("MAX_PAYLOAD_BYTES", 1 << 40),
        ("MAX_RESULT_BYTES", True),
        ("BUSY_TIMEOUT", 0),
        ("BUSY_TIMEOUT", -1),
        ("BUSY_TIMEOUT", float("nan")),
        ("RUNTIME_DIR", ""),
        ("RUNTIME_DIR", "run/queue"),
        ("RUNTIME_DIR", "/no/such/folder"),
        ("RUNTIME_DIR", __file__),
    ],
)
def test_e003_a_value_that_will_not_do(settings, key, value):
    settings.JOBQUEUE = {key: value}
    message = _only("jobqueue.E003")
    assert repr(key) in message.msg
    assert repr(value) in message.msg
    assert repr(conf.SETTINGS[key].default) in message.hint


def test_several_mistakes_are_told_at_once(settings):
    settings.JOBQUEUE = {"DATABSE": "x", "BUSY_TIMEOUT": 0, "MAX_RESULT_BYTES": 0}
    assert sorted(_ids()) == ["jobqueue.E002", "jobqueue.E003", "jobqueue.E003"]


def test_e004_a_database_that_does_not_exist(settings):
    settings.JOBQUEUE = {"DATABASE": "defualt"}
    message = _only("jobqueue.E004")
    assert "'defualt'" in message.msg
    assert message.hint == "Did you mean 'default'?"


def test_e004_a_database_unlike_any_other(settings):
    settings.JOBQUEUE = {"DATABASE": "xyzzy"}
    assert "DATABASES" in _only("jobqueue.E004").hint


def test_e005_a_database_of_another_vendor(settings, add_database):
    add_database("elsewhere", "django.db.backends.dummy")
    settings.JOBQUEUE = {"DATABASE": "elsewhere"}
    message = _only("jobqueue.E005")
    assert "unknown" in message.msg
    assert "sqlite, postgresql" in message.hint


def test_a_backend_of_ones_own_may_run_on_another_vendor(settings, add_database):
    add_database("elsewhere", "django.db.backends.dummy")
    settings.JOBQUEUE = {"DATABASE": "elsewhere", "BACKEND": "shop.queue.Backend"}
    assert "jobqueue.E005" not in _ids()


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("x.y.Z", "cannot be imported: No module named 'x'"),
        ("MemoryBackend", "Did you mean 'jobqueue.backends.memory.MemoryBackend'"),
        ("jobqueue.backends.memory.MemoryBakend", "Did you mean 'jobqueue.backends.memory.MemoryBackend'"),
        ("jobqueue.models.Job", "no subclass of jobqueue.backends.base.Backend"),
        ("jobqueue.enqueue", "no subclass of jobqueue.backends.base.Backend"),
        ("jobqueue.backends.base.Backend", "does not define "),
    ],
)
def test_e014_a_backend_that_is_none(settings, path, why):
    settings.JOBQUEUE = {"BACKEND": path}
    message = _only("jobqueue.E014")
    assert repr(path) in message.msg
    assert why in message.msg
    assert "Leave out BACKEND" in message.hint


def test_a_backend_of_ones_own_gives_no_message(settings):
    settings.JOBQUEUE = {"BACKEND": "jobqueue.backends.memory.MemoryBackend"}
    assert check_settings() == []


def test_the_checks_have_a_tag(settings, databases):
    settings.JOBQUEUE = {"DATABSE": "default"}
    assert "jobqueue.E002" in [message.id for message in run_checks(tags=["jobqueue"])]
    settings.JOBQUEUE = {}
    settings.ROOT_URLCONF = "nowhere"  # of which Django's own checks complain
    ids = [message.id for message in run_checks(tags=["jobqueue"])]
    assert "jobqueue_files.W001" in ids
    assert [one for one in ids if not one.startswith("jobqueue")] == []


def test_settings_that_are_no_dict_fail_no_other_check(settings, databases):
    settings.JOBQUEUE = "default"
    assert {message.id for message in run_checks(tags=["jobqueue"]) if message.level == ERROR} == {"jobqueue.E001"}


def test_e006_postgres_without_its_driver(settings, add_database, monkeypatch):
    add_database("elsewhere", "django.db.backends.postgresql")
    settings.JOBQUEUE = {"DATABASE": "elsewhere"}
    assert "jobqueue.E006" not in _ids()
    monkeypatch.setitem(sys.modules, "psycopg", None)  # as if it were not installed
    assert "django-jobqueue[postgres]" in _only("jobqueue.E006").hint


def test_e007_a_sqlite_that_is_too_old(monkeypatch):
    monkeypatch.setattr(sqlite3, "sqlite_version_info", OLDEST_SQLITE)
    assert "jobqueue.E007" not in _ids()
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 99))
    assert "3.35" in _only("jobqueue.E007").hint


@pytest.mark.parametrize("mode", [None, "DEFERRED", ""])
def test_w001_transactions_that_begin_deferred(settings, add_database, mode):
    add_database("plain", OPTIONS=GOOD | {"transaction_mode": mode})
    settings.JOBQUEUE = {"DATABASE": "plain"}
    assert "['transaction_mode'] = 'IMMEDIATE'" in _only("jobqueue.W001").hint


@pytest.mark.parametrize("mode", ["IMMEDIATE", "immediate", "EXCLUSIVE"])
def test_transactions_that_begin_with_the_lock_give_no_message(settings, add_database, mode):
    add_database("plain", OPTIONS=GOOD | {"transaction_mode": mode})
    settings.JOBQUEUE = {"DATABASE": "plain"}
    assert "jobqueue.W001" not in _ids()


@pytest.mark.parametrize("command", [None, "", "PRAGMA synchronous=NORMAL;", "PRAGMA journal_mode=DELETE"])
def test_w002_no_write_ahead_log(settings, add_database, command):
    add_database("plain", OPTIONS=GOOD | {"init_command": command})
    settings.JOBQUEUE = {"DATABASE": "plain"}
    assert "journal_mode=WAL" in _only("jobqueue.W002").hint


@pytest.mark.parametrize("command", ["PRAGMA journal_mode=WAL", "pragma journal_mode = wal;"])
def test_a_write_ahead_log_is_recognized_however_it_is_spelled(settings, add_database, command):
    add_database("plain", OPTIONS=GOOD | {"init_command": command})
    settings.JOBQUEUE = {"DATABASE": "plain"}
    assert "jobqueue.W002" not in _ids()


@pytest.mark.parametrize(("release", "found"), [((3, 51, 2), ["jobqueue.W003"]), (WAL_RESET_FIXED, [])])
def test_w003_a_sqlite_with_the_wal_reset_bug_is_told_where_a_project_is_deployed(
    settings, databases, monkeypatch, release, found
):
    settings.JOBQUEUE = {}
    monkeypatch.setattr(sqlite3, "sqlite_version_info", release)
    messages = [one for one in run_checks(include_deployment_checks=True) if one.id == "jobqueue.W003"]
    assert [one.id for one in messages] == found
    assert all("3.51.3" in one.hint for one in messages)
    assert "jobqueue.W003" not in [one.id for one in run_checks()]


@pytest.mark.parametrize("mode", [None, "store", "inline", "immediate"])
def test_w020_the_settings_of_tests_are_told_where_a_project_is_deployed(settings, mode):
    settings.JOBQUEUE = {"TESTING": mode}
    messages = [one for one in run_checks(include_deployment_checks=True) if one.id == "jobqueue.W020"]
    assert [repr(mode) in one.msg for one in messages] == ([] if mode is None else [True])
    assert "jobqueue.W020" not in [one.id for one in run_checks()]


def test_w003_is_about_the_write_ahead_log_of_sqlite(settings, add_database, monkeypatch):
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 51, 2))
    add_database("plain", OPTIONS={})
    for wrong in ({"DATABASE": "plain"}, {"DATABASE": "nowhere"}, {"DATABSE": 1}, []):
        settings.JOBQUEUE = wrong
        assert check_sqlite_release() == []


def test_w004_a_database_of_its_own_without_the_router(settings, add_database):
    add_database("queue", OPTIONS=GOOD)
    settings.JOBQUEUE = {"DATABASE": "queue"}
    assert "jobqueue.routers.JobQueueRouter" in _only("jobqueue.W004").hint
    settings.DATABASE_ROUTERS = ["jobqueue.routers.JobQueueRouter"]
    assert "jobqueue.W004" not in _ids()


def test_w005_a_database_of_its_own_is_no_part_of_the_applications_transactions(settings, add_database):
    assert "jobqueue.W005" not in _ids()
    add_database("queue", OPTIONS=GOOD)
    settings.JOBQUEUE = {"DATABASE": "queue"}
    assert "enqueue_on_commit" in _only("jobqueue.W005").hint


def test_errors_are_errors_and_warnings_warnings_each_with_a_hint(settings, add_database, monkeypatch):
    add_database("plain")
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 99))
    found = []
    for value in ([], {"DATABSE": 1, "BUSY_TIMEOUT": 0}, {"DATABASE": "xyzzy"}, {"DATABASE": "plain"}, {}):
        settings.JOBQUEUE = value
        found += [*check_settings(), *check_sqlite_release()]
    assert {message.id[-4:] for message in found} == {
        *("E001", "E002", "E003", "E004", "E007"),
        *("W001", "W002", "W003", "W004", "W005"),
    }
    assert all(message.hint for message in found)
    assert all(message.level == (ERROR if ".E" in message.id else WARNING) for message in found)
