"""The stores of a run, one for each turn, which are created and dropped."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial

from benchmarks.databases import NoPostgres, Place, postgres_place, sqlite_place
from benchmarks.peers import redis

try:
    import psycopg
except ImportError:
    psycopg = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class Store:
    """Where jobs are kept, and how durably."""

    title: str
    make: Callable[[], AbstractContextManager[Place]]


#: Connections are kept, unless they are as a new project has them.
STORES = {
    "sqlite-normal": Store("SQLite, WAL, NORMAL", partial(sqlite_place, "NORMAL", CONN_MAX_AGE=None)),
    "sqlite-full": Store("SQLite, WAL, FULL", partial(sqlite_place, "FULL", CONN_MAX_AGE=None)),
    "sqlite": Store("SQLite, new project", partial(sqlite_place, None)),
    "postgres": Store("Postgres", partial(postgres_place, CONN_MAX_AGE=None)),
    "postgres-new": Store("Postgres, new project", postgres_place),
    "redis": Store("Redis", redis.redis_place),
}


def durability(names: Collection[str]) -> dict[str, str]:
    """Say of each store what a commit is worth, as its server is configured."""
    worth: dict[str, Callable[[], str]] = {
        "sqlite-normal": lambda: (
            f"{sqlite3.sqlite_version}; a commit outlives its process, the last ones before a power cut may be lost"
        ),
        "sqlite-full": lambda: "each commit is synced",
        "sqlite": lambda: "each commit is synced, by way of a rollback journal: only ENGINE and NAME are set",
        "postgres": _postgres,
        "postgres-new": lambda: "the same server; connections are not kept, and nothing is analysed by hand",
        "redis": _redis,
    }
    return {STORES[name].title: say() for name, say in worth.items() if name in names}


def _postgres() -> str:
    try:
        with postgres_place() as place, psycopg.connect(place.address) as connection:
            read = {
                name: connection.execute(f"SHOW {name}").fetchone()
                for name in ("server_version", "fsync", "synchronous_commit", "shared_buffers")
            }
    except NoPostgres as error:
        return f"not there: {error}"
    return ", ".join(f"{name} {value[0] if value else '?'}" for name, value in read.items())


def _redis() -> str:
    try:
        read = redis.settings()
    except redis.NoRedis as error:
        return f"not there: {error}"
    worth = "nothing is kept if it dies" if (read["appendonly"], read["save"]) == ("no", "") else "as these say"
    appended = f"appendonly {read['appendonly']}, appendfsync {read['appendfsync']}, save '{read['save']}'"
    return f"{read['version']}, {appended}: {worth}"
