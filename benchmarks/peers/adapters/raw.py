"""The bare SQL through the driver, which is the upper bound for a queue."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from benchmarks import databases
from benchmarks.cycling import OWNER
from benchmarks.peers.adapters import protocol
from benchmarks.peers.adapters.tally import begin
from benchmarks.raw import PAYLOAD, Held, Row
from benchmarks.raw_postgres import RawPostgres
from benchmarks.raw_sqlite import RawSqlite
from benchmarks.site import Site
from jobqueue.clock import SYSTEM, to_text
from jobqueue.ids import new_id

_LEFT = "SELECT count(*) FROM job_queue WHERE status IN ('queued', 'in_progress')"
_PAUSE = 0.001


class _Sqlite(RawSqlite):
    """Syncs as the contestants beside it, by the same pragmas."""

    pragmas = ""

    def connect(self) -> None:
        super().connect()
        self._connection.executescript(self.pragmas)

    def left(self) -> int:
        return int(self._connection.execute(_LEFT).fetchone()[0])


class _Postgres(RawPostgres):
    """As it is, and counts."""

    def left(self) -> int:
        return sum(row[0] for row in self._connection.execute(_LEFT))


class Adapter(protocol.Adapter):
    """Settles so many jobs and claims the next, in one transaction, by one process without any handler."""

    def __init__(self, place: protocol.Place, options: dict[str, Any]) -> None:
        super().__init__(place, options)
        self._raw: _Sqlite | _Postgres
        if place.vendor == "sqlite":
            _Sqlite.pragmas = place.database["OPTIONS"]["init_command"]
            self._raw = _Sqlite(place.address)
        else:
            self._raw = _Postgres(place.address)

    def prepare(self) -> None:
        place = databases.Place(**asdict(self.place))
        place.configure()
        site = Site(place, quick=True)
        site.fresh()
        site.close()
        self._raw.close()
        self._raw.connect()

    def enqueue(self, job: str, payload: dict[str, Any]) -> None:
        self._raw.enqueue([_row()])

    def enqueue_many(self, job: str, payloads: list[dict[str, Any]]) -> None:
        self._raw.enqueue_many([_row() for _ in payloads])

    def left(self) -> int:
        return self._raw.left()

    def work(self) -> None:
        done: Sequence[Held] = ()
        while True:
            done = self._raw.cycle(OWNER, done, self.options["limit"])
            for _ in done:
                begin()
            if not done:
                time.sleep(_PAUSE)


def _row() -> Row:
    job_id, now = new_id(), to_text(SYSTEM.now())
    return (job_id, "default", "resize_image", "queued", 5, now, PAYLOAD, f"raw-{job_id}", 0, 3, now, now)
