"""Other settings than a run's own: a SQLite that syncs every commit, and a project as a newcomer has it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.databases import Place
from benchmarks.raw_sqlite import RawSqlite


class RawDurable(RawSqlite):
    """The bare SQL under ``synchronous=FULL``."""

    def connect(self) -> None:
        super().connect()
        self._connection.execute("PRAGMA synchronous = FULL")


def durable(place: Place) -> Place:
    """Have SQLite sync every commit; Postgres does so anyway."""
    options = place.database["OPTIONS"]
    if "init_command" not in options:
        return place
    command = options["init_command"].replace("synchronous=NORMAL", "synchronous=FULL")
    return replace(place, database=place.database | {"OPTIONS": options | {"init_command": command}})


def plain(place: Place, folder: str) -> Place:
    """Have SQLite as ``startproject`` leaves it, in a file of its own: a rollback journal, deferred transactions.

    A run's own file will not do, for the write-ahead log stays with a file. What a run says of Postgres is plain
    already: ``CONN_MAX_AGE`` is 0.
    """
    if place.vendor != "sqlite":
        return place
    path = str(Path(folder) / "db.sqlite3")
    return replace(place, database={"ENGINE": place.database["ENGINE"], "NAME": path}, address=path)
