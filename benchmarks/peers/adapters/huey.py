# mypy: disable-error-code="import-not-found,misc"
"""Huey, on SQLite or Redis."""

from __future__ import annotations

import sqlite3
from typing import Any

from huey import RedisHuey, SqliteHuey
from huey.storage import SqliteStorage

from benchmarks.peers.adapters import handlers, protocol


class _Storage(SqliteStorage):
    """Syncs as the contestants beside it, by the same pragmas; Huey itself has full syncing or none."""

    pragmas = ""

    def _create_connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection = super()._create_connection()
        connection.executescript(self.pragmas)
        return connection


class Adapter(protocol.Adapter):
    """Keeps no results; has no bulk call. A job leaves the store as it begins, so no store says what is running."""

    def __init__(self, place: protocol.Place, options: dict[str, Any]) -> None:
        super().__init__(place, options)
        if place.vendor == "sqlite":
            _Storage.pragmas = place.database["OPTIONS"]["init_command"]
            self._huey = SqliteHuey("bench", filename=place.address, results=False, storage_class=_Storage)
        else:
            self._huey = RedisHuey("bench", url=place.address, results=False)
        self._tasks = {
            handler.__name__: self._huey.task()(handler)
            for handler in (handlers.resize_image, handlers.nap, handlers.stamp)
        }

    def prepare(self) -> None:
        self._huey.storage.queue_size()  # connects

    def enqueue(self, job: str, payload: dict[str, Any]) -> None:
        self._tasks[job](**payload)

    def left(self) -> int:
        return int(self._huey.storage.queue_size())

    def work(self) -> None:
        self._huey.create_consumer(periodic=False, **self.options["consumer"]).run()
