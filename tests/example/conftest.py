"""Fixtures of the example project on each database, migrated once and copied for each test module."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing

import pytest
from django.conf import settings

from tests.example.site import Site

NAMES = {"HOST": "PGHOST", "PORT": "PGPORT", "USER": "PGUSER", "PASSWORD": "PGPASSWORD"}


def on_file(folder):
    path = folder / "example.sqlite3"
    environment = {"EXAMPLE_SQLITE": str(path), "EXAMPLE_NETWORK": str(folder / "network")}
    return Site(folder, environment, lambda: sqlite3.connect(path, timeout=10))


def connection_to(name):
    import psycopg

    arguments = {key.lower(): settings.POSTGRES[key] for key in NAMES if settings.POSTGRES.get(key)}
    return psycopg.connect(dbname=name, **arguments)


def on_server(folder, name):
    given = {NAMES[key]: str(settings.POSTGRES[key]) for key in NAMES if settings.POSTGRES.get(key)}
    environment = given | {"EXAMPLE_POSTGRES": name, "EXAMPLE_NETWORK": str(folder / "network")}
    return Site(folder, environment, lambda: connection_to(name))


def on_maintenance(statement):
    """Run a statement that no transaction may hold."""
    with closing(connection_to(settings.POSTGRES["NAME"])) as connection:
        connection.autocommit = True
        connection.execute(statement)


@pytest.fixture(scope="session")
def _migrated_file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("migrated")
    on_file(folder).manage("migrate", "-v", "0", "--skip-checks")
    return folder / "example.sqlite3"


@pytest.fixture(scope="session")
def _migrated_server(tmp_path_factory):
    name = f"jobqueue_example_{settings.OWN}"
    on_maintenance(f'CREATE DATABASE "{name}"')
    on_server(tmp_path_factory.mktemp("migrated"), name).manage("migrate", "-v", "0", "--skip-checks")
    yield name
    on_maintenance(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture(scope="module")
def _file(_migrated_file, tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    shutil.copy(_migrated_file, folder)
    return on_file(folder)


@pytest.fixture(scope="module")
def _server(_migrated_server, tmp_path_factory):
    name = f"{_migrated_server}_copy"
    on_maintenance(f'CREATE DATABASE "{name}" TEMPLATE "{_migrated_server}"')
    yield on_server(tmp_path_factory.mktemp("site"), name)
    on_maintenance(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture(
    scope="module",
    params=[pytest.param("_file", marks=pytest.mark.sqlite), pytest.param("_server", marks=pytest.mark.postgres)],
    ids=["sqlite", "postgres"],
)
def site(request):
    """The example project, migrated, with nothing in it."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module")
def client(site):
    """A client of the example's web server."""
    with site.serving() as client:
        yield client
