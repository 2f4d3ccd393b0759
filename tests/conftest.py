"""The databases of the suite: both are made once, each test begins with empty tables."""

from __future__ import annotations

import os
import shutil

import pytest
from django.conf import settings
from django.db import connections
from django.test.utils import setup_databases, teardown_databases
from hypothesis import settings as hypothesis_settings

from jobqueue import backends
from jobqueue.backends.memory import MemoryBackend
from jobqueue.backends.sqlite import SqliteBackend
from jobqueue.models import Attempt, Job, Metric, Pause, Relay, Worker
from jobqueue.testing import VirtualClock

TABLES = (Attempt, Job, Metric, Pause, Relay, Worker)

#: How many tests of a run may need a second try (``--reruns``) before the run fails for it.
STUMBLES = 3

# CI asks whether this commit broke something, and gives the same answer twice; other runs go on searching.
hypothesis_settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    hypothesis_settings.load_profile("ci")


def pytest_configure():
    if settings.POSTGRES is None and "postgres" in os.environ.get("JOBQUEUE_TEST_REQUIRE", "").split(","):
        pytest.exit(f"JOBQUEUE_TEST_REQUIRE asks for Postgres, but {settings.WHY_NO_POSTGRES}.", returncode=1)


def pytest_unconfigure():
    shutil.rmtree(settings.PRIVATE, ignore_errors=True)


def pytest_sessionfinish(session):
    if len(_stumbled(session.config)) > STUMBLES:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _stumbled(config):
    reports = config.pluginmanager.get_plugin("terminalreporter").stats.get("rerun", [])
    return {report.nodeid: report for report in reports}


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
    if settings.POSTGRES is None:
        terminalreporter.section("POSTGRES WAS SKIPPED", sep="!", red=True, bold=True)
        terminalreporter.line(f"No test ran on Postgres: {settings.WHY_NO_POSTGRES}.")
        terminalreporter.line(
            "Set JOBQUEUE_TEST_POSTGRES to a connection string, for example 'host=127.0.0.1 user=me'."
        )


def pytest_collection_modifyitems(items):
    for item in items:
        if item.get_closest_marker("postgres") and settings.POSTGRES is None:
            item.add_marker(pytest.mark.skip(reason=f"Postgres: {settings.WHY_NO_POSTGRES}"))


@pytest.fixture(scope="session")
def _databases(django_test_environment, django_db_blocker):
    with django_db_blocker.unblock():
        made = setup_databases(verbosity=0, interactive=False)
        yield
        teardown_databases(made, verbosity=0)


@pytest.fixture
def databases(_databases):
    """Let a test use the databases for real: it commits, and what it leaves is deleted."""
    yield
    for alias in connections:
        with connections[alias].cursor() as cursor:
            for table in TABLES:
                cursor.execute(f"DELETE FROM {table._meta.db_table}")
    connections.close_all()


@pytest.fixture(
    params=[pytest.param("default", marks=pytest.mark.sqlite), pytest.param("postgres", marks=pytest.mark.postgres)],
    ids=["sqlite", "postgres"],
)
def alias(request, databases):
    """The alias of each database in turn."""
    return request.param


#: For what only SQLite does, and for what no database has a say in.
ON_SQLITE = pytest.mark.parametrize("alias", [pytest.param("default", marks=pytest.mark.sqlite)], indirect=True)


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
def clock():
    return VirtualClock()
