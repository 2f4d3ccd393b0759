"""The databases of a run, which are created and dropped: a temporary SQLite file, and a Postgres database."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import django
from django.conf import settings

try:
    import psycopg
    from psycopg import sql
    from psycopg.conninfo import conninfo_to_dict, make_conninfo
except ImportError:
    psycopg = None  # type: ignore[assignment]

VARIABLE = "JOBQUEUE_BENCH_POSTGRES"
TRIED = ("dbname=postgres", "host=127.0.0.1 user=postgres dbname=postgres")

_SETTINGS = {"host": "HOST", "port": "PORT", "user": "USER", "password": "PASSWORD", "dbname": "NAME"}


class NoPostgres(Exception):
    """No Postgres server answers. The message says which one was tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A vendor's database: Django's settings, and the address for the bare driver."""

    vendor: str
    database: dict[str, Any]
    address: str
    runtime: str
    #: Further keys of ``JOBQUEUE``.
    jobqueue: dict[str, Any] = field(default_factory=dict)

    def configure(self, apps: Sequence[str] = ("django.contrib.contenttypes",), **others: Any) -> None:
        """Make this process a minimal Django project with the queue and the named apps."""
        settings.configure(
            DATABASES={"default": self.database},
            DEBUG=False,
            DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
            INSTALLED_APPS=[*apps, "jobqueue"],
            JOBQUEUE={"RUNTIME_DIR": self.runtime, "RETENTION": []} | self.jobqueue,
            SECRET_KEY="for benchmarks",  # noqa: S106 - nothing here is secret
            USE_TZ=True,
            **others,
        )
        django.setup()


@contextmanager
def sqlite_place(synchronous: str | None = "NORMAL", **others: Any) -> Iterator[Place]:
    """Create a folder for a SQLite file, and remove it. Without ``synchronous``, Django's options are unchanged."""
    with tempfile.TemporaryDirectory(prefix="jobqueue-bench-") as folder:
        path = str(Path(folder) / "queue.sqlite3")
        database = {"ENGINE": "django.db.backends.sqlite3", "NAME": path, **others}
        if synchronous:
            database["OPTIONS"] = {
                "transaction_mode": "IMMEDIATE",
                "init_command": f"PRAGMA journal_mode=WAL; PRAGMA synchronous={synchronous};",
            }
        yield Place(vendor="sqlite", database=database, address=path, runtime=folder)


@contextmanager
def postgres_place(**others: Any) -> Iterator[Place]:
    """Create a Postgres database, and drop it. Raise NoPostgres if no server answers."""
    given = _answering()
    name = f"jobqueue_bench_{os.getpid()}"
    with psycopg.connect(given, autocommit=True) as connection, tempfile.TemporaryDirectory() as folder:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            address = make_conninfo(given, dbname=name)
            yield Place(vendor="postgres", database=_settings(address) | others, address=address, runtime=folder)
        finally:
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def _settings(conninfo: str) -> dict[str, Any]:
    values = conninfo_to_dict(conninfo)
    named = {_SETTINGS[key]: str(value) for key, value in values.items() if key in _SETTINGS}
    options = {key: value for key, value in values.items() if key not in _SETTINGS}
    return {"ENGINE": "django.db.backends.postgresql", **named, "OPTIONS": options}


def _answering() -> str:
    if psycopg is None:
        raise NoPostgres("psycopg is not installed; install django-jobqueue[postgres]")
    given = os.environ.get(VARIABLE, "")
    reasons = []
    for conninfo in [given] if given else TRIED:
        try:
            psycopg.connect(conninfo, connect_timeout=3).close()
        except psycopg.OperationalError as error:
            reasons.append(str(error).strip().splitlines()[0])
        else:
            return conninfo
    raise NoPostgres(f"none answers ({'; '.join(reasons)}); set {VARIABLE} to a connection string")
