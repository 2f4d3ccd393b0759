"""Variants of a run's settings: a SQLite that syncs every commit, and a newcomer's project."""

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
    """Configure SQLite to sync every commit. Postgres does so anyway."""
    options = place.database["OPTIONS"]
    if "init_command" not in options:
        return place
    command = options["init_command"].replace("synchronous=NORMAL", "synchronous=FULL")
    return replace(place, database=place.database | {"OPTIONS": options | {"init_command": command}})


def plain(place: Place, folder: str) -> Place:
    """Configure SQLite as ``startproject`` does, in a file of its own: rollback journal, deferred transactions.

    A run's own file is unsuitable, because write-ahead logging is a property of the file. Postgres needs no change:
    ``CONN_MAX_AGE`` is 0.
    """
    if place.vendor != "sqlite":
        return place
    path = str(Path(folder) / "db.sqlite3")
    return replace(place, database={"ENGINE": place.database["ENGINE"], "NAME": path}, address=path)
