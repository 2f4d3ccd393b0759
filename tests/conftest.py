"""The databases of the suite: each process makes both once, and each test begins with empty tables."""

from __future__ import annotations

import gc
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from django.conf import settings
from django.db import connections
from django.db.backends.signals import connection_created
from django.test.utils import setup_databases, teardown_databases
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from jobqueue import backends
from jobqueue.backends.memory import MemoryBackend
from jobqueue.backends.sqlite import SqliteBackend
from jobqueue.backends.sqlite.ports.storage import LARGEST_LOG
from jobqueue.models import (
    Alert,
    Attempt,
    Counter,
    Duty,
    Gauge,
    Job,
    KnownError,
    Metric,
    Order,
    OrderedJob,
    OrderPart,
    Pause,
    Relay,
    SavedSearch,
    Schedule,
    Silence,
    Start,
    StoredLimit,
    Throttle,
    Turn,
    Worker,
)
from jobqueue.testing import VirtualClock
from tests import distribution
from tests.requirements import POSTGRES, refusal, say_what_was_skipped
from tests.worker.harness import until

TABLES = (
    *(Alert, Attempt, Counter, Duty, Gauge, Job, KnownError, Metric, OrderPart, OrderedJob, Order, Pause, Relay),
    *(SavedSearch, Schedule, Silence, Start, StoredLimit, Throttle, Turn, Worker),
)

#: How many tests of a run may need a second try (``--reruns``) before the run fails for it.
STUMBLES = 3

# How long an example takes says little: other tests are at work on the same cores.
hypothesis_settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# CI asks whether this commit broke something, and gives the same answer twice; other runs go on searching.
hypothesis_settings.register_profile("ci", hypothesis_settings.get_profile("default"), derandomize=True)
# A first answer in seconds (scripts/fast).
hypothesis_settings.register_profile("fast", hypothesis_settings.get_profile("default"), max_examples=15)
hypothesis_settings.load_profile("ci" if os.environ.get("CI") else "default")


def pytest_configure():
    if why_not := refusal():
        pytest.exit(why_not, returncode=1)


def pytest_unconfigure():
    shutil.rmtree(settings.PRIVATE, ignore_errors=True)


def pytest_xdist_auto_num_workers(config):
    return distribution.processes(config.args)


def pytest_xdist_make_scheduler(config, log):
    return distribution.Distribution(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_report_header(config):
    return distribution.header(config.getoption("numprocesses"))


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collect without looking for garbage: there is none among ten thousand tests, which later looks leave out."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # before -m and --lf choose
def pytest_collection_modifyitems(items):
    items.sort(key=distribution.turn)
    for item in items:
        if family := distribution.family(item):
            item.add_marker(family)
        if item.get_closest_marker("postgres") and POSTGRES.missing:
            item.add_marker(pytest.mark.skip(reason=POSTGRES.reason))


def pytest_sessionfinish(session):
    if len(_stumbled(session.config)) > STUMBLES:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _stumbled(config):
    reporter = config.pluginmanager.get_plugin("terminalreporter")  # only the first process of a run has one
    return {report.nodeid: report for report in reporter.stats.get("rerun", [])} if reporter else {}


def pytest_terminal_summary(terminalreporter):
    stumbled = _stumbled(terminalreporter.config)
    if stumbled:
        terminalreporter.section("STUMBLED", sep="!", red=True, bold=True)
        terminalreporter.line(
            f"These failed and were run again. Each is a test without patience, or a race to be found: mend it. "
            f"More than {STUMBLES} fail the run."
        )
    for name, report in stumbled.items():
        terminalreporter.section(name)
        terminalreporter.line(report.longreprtext)
        for heading, text in report.sections:
            terminalreporter.section(heading, sep="-")
            terminalreporter.line(text)
    say_what_was_skipped(terminalreporter)


@pytest.fixture(scope="session")
def _databases(django_test_environment, django_db_blocker):
    with django_db_blocker.unblock():
        made = setup_databases(verbosity=0, interactive=False)
        for alias in connections:
            if connections[alias].vendor == "postgresql":
                _commit_without_waiting(alias)
        connections.close_all()  # a test that finds a connection open would not delete what it leaves
        with closing(sqlite3.connect(connections["default"].settings_dict["NAME"], isolation_level=None)) as open_file:
            # Who closes an SQLite file last writes its log back to disk: with this connection, no test does.
            open_file.execute("SELECT * FROM job_queue").fetchall()
            yield
            left = [(alias, table) for alias in connections for table in TABLES if table.objects.using(alias).exists()]
        for alias in connections:
            if connections[alias].vendor == "postgresql":
                _wait_until_alone(alias)
        connections.close_all()  # the last look opened one, and a database in use is not dropped
        teardown_databases(made, verbosity=0)
        assert not left, f"The tests left rows: {left}."


def _commit_without_waiting(alias):
    """Have a Postgres database not wait for its disk: no test breaks the server's power."""
    with connections[alias].cursor() as cursor:
        name = connections[alias].ops.quote_name(connections[alias].settings_dict["NAME"])
        cursor.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
    connections[alias].close()


def _wait_until_alone(alias):
    """Wait until a Postgres database has no other session: one whose process was killed ends soon after it."""
    others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"

    def is_alone():
        with connections[alias].cursor() as cursor:
            cursor.execute(others)
            return cursor.fetchone() == (0,)

    until(is_alone, what="the last session of another process")


@pytest.fixture
def databases(request, _databases):
    """Let a test use the databases for real: it commits, and what it leaves is deleted."""
    used = {"default"} | ({"postgres"} if request.node.get_closest_marker("postgres") else set())

    def note(connection, **kwargs):
        used.add(connection.alias)

    connection_created.connect(note)
    yield
    connection_created.disconnect(note)
    log = Path(f"{connections['default'].settings_dict['NAME']}-wal")
    for alias in used.intersection(connections):
        statements = [f"DELETE FROM {table._meta.db_table}" for table in TABLES]
        with connections[alias].cursor() as cursor:
            for statement in [";".join(statements)] if connections[alias].vendor == "postgresql" else statements:
                cursor.execute(statement)
            if alias == "default" and log.exists() and log.stat().st_size > LARGEST_LOG:
                cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # or status would warn of it
    connections.close_all()


@pytest.fixture(
    params=[pytest.param("default", marks=pytest.mark.sqlite), pytest.param("postgres", marks=pytest.mark.postgres)],
    ids=["sqlite", "postgres"],
)
def alias(request, databases):
    """The alias of each database in turn."""
    return request.param


#: For what only SQLite does, and for what no database has a say in. A module of such tests has ``SQLITE_ALONE``.
ON_SQLITE = pytest.mark.parametrize("alias", [pytest.param("default", marks=pytest.mark.sqlite)], indirect=True)
#: For a test of such a module that goes through both.
ON_BOTH = pytest.mark.parametrize(
    "alias",
    [pytest.param("default", marks=pytest.mark.sqlite), pytest.param("postgres", marks=pytest.mark.postgres)],
    indirect=True,
    ids=["sqlite", "postgres"],
)


@pytest.hookimpl(tryfirst=True)  # before the marks are read
def pytest_generate_tests(metafunc):
    chosen = {mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")}
    if getattr(metafunc.module, "SQLITE_ALONE", False) and "alias" in metafunc.fixturenames and "alias" not in chosen:
        metafunc.definition.add_marker(ON_SQLITE)


@pytest.fixture
def queue(alias, settings):
    """The backend that the public API uses, on each database in turn."""
    settings.JOBQUEUE = {"DATABASE": alias}
    return backends.current()


def make_sql_backend(alias, clock):
    if alias == "default":
        return SqliteBackend(alias, clock)
    from jobqueue.backends.postgresql import PostgresBackend

    return PostgresBackend(alias, clock)


@pytest.fixture(
    params=[
        "memory",
        pytest.param("default", marks=pytest.mark.sqlite),
        pytest.param("postgres", marks=pytest.mark.postgres),
    ],
    ids=["memory", "sqlite", "postgres"],
)
def make_backend(request):
    """A function that makes an empty backend of each kind in turn."""
    if request.param == "memory":
        return lambda clock: MemoryBackend(clock=clock)
    request.getfixturevalue("databases")
    return lambda clock: make_sql_backend(request.param, clock)


@pytest.fixture
def runtime_dir():
    """An empty folder for sockets: that of ``tmp_path`` may be too long for their addresses."""
    with TemporaryDirectory(prefix="", dir=settings.PRIVATE) as folder:
        yield folder


@pytest.fixture
def clock():
    return VirtualClock()
