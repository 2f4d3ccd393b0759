"""The databases of the suite: both are made once, each test begins with empty tables."""

from __future__ import annotations

import os
import shutil

import pytest
from django.conf import settings
from django.db import connections
from django.test.utils import setup_databases, teardown_databases

from jobqueue import backends
from jobqueue.backends.memory import MemoryBackend
from jobqueue.backends.sqlite import SqliteBackend
from jobqueue.models import Attempt, Job, Pause, Worker
from jobqueue.testing import VirtualClock

TABLES = (Attempt, Job, Pause, Worker)


def pytest_configure():
    if settings.POSTGRES is None and "postgres" in os.environ.get("JOBQUEUE_TEST_REQUIRE", "").split(","):
        pytest.exit(f"JOBQUEUE_TEST_REQUIRE asks for Postgres, but {settings.WHY_NO_POSTGRES}.", returncode=1)


def pytest_unconfigure():
    shutil.rmtree(settings.PRIVATE, ignore_errors=True)


def pytest_terminal_summary(terminalreporter):
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
