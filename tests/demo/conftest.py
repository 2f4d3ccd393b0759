"""Fixtures of the demo's tests: a process and a database of its own."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from django.conf import settings

ROOT = Path(__file__).resolve().parents[2]
MANAGE = [sys.executable, str(ROOT / "manage.py")]


@dataclass
class Site:
    """The example project on a database of its own."""

    environment: dict[str, str]
    options: list[str]
    connect: object = field(repr=False)

    @property
    def env(self):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("EXAMPLE_", "COLUMNS"))}
        return kept | {"DJANGO_SETTINGS_MODULE": "example_project.settings"} | self.environment

    def demo(self, *words):
        return self.run([*MANAGE, "demo", *self.options, *words])

    def run(self, line):
        done = subprocess.run(line, cwd=ROOT, env=self.env, capture_output=True, text=True, timeout=100, check=False)
        return done.returncode, done.stdout, done.stderr

    def rows(self, statement):
        with closing(self.connect()) as connection:
            return [tuple(row) for row in connection.execute(statement).fetchall()]

    def write(self, statement):
        with closing(self.connect()) as connection:
            connection.execute(statement)
            connection.commit()


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """The example project on an SQLite file, in a folder with a space in its name."""
    path = tmp_path_factory.mktemp("a demo") / "its own.sqlite3"
    return Site({"EXAMPLE_SQLITE": str(path)}, ["--database", str(path)], lambda: sqlite3.connect(path, timeout=10))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The example project on a Postgres database."""
    import psycopg

    given = {key: value for key, value in settings.POSTGRES.items() if key in ("HOST", "PORT", "USER", "PASSWORD")}
    names = {"HOST": "PGHOST", "PORT": "PGPORT", "USER": "PGUSER", "PASSWORD": "PGPASSWORD"}
    environment = {names[key]: str(value) for key, value in given.items() if value}
    arguments = {key.lower(): value for key, value in given.items() if value}
    name = f"jobqueue_demo_{settings.OWN}"

    def connect(dbname=name, **more):
        return psycopg.connect(dbname=dbname, **arguments, **more)

    with closing(connect(settings.POSTGRES["NAME"], autocommit=True)) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    network = tmp_path_factory.mktemp("network")
    yield Site(environment | {"EXAMPLE_POSTGRES": name, "EXAMPLE_NETWORK": str(network)}, [], connect)
    with closing(connect(settings.POSTGRES["NAME"], autocommit=True)) as connection:
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture(
    scope="module",
    params=[pytest.param("file", marks=pytest.mark.sqlite), pytest.param("server", marks=pytest.mark.postgres)],
    ids=["sqlite", "postgres"],
)
def site(request):
    """The example project on each database in turn."""
    return request.getfixturevalue(request.param)
