# mypy: disable-error-code="import-not-found,untyped-decorator"
"""PgQueuer: coroutines on one event loop, over asyncpg."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer import run as run_worker
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries

from benchmarks.peers.adapters import handlers, protocol


class Adapter(protocol.Adapter):
    """Payloads are bytes, which a handler that does not need them leaves undecoded. Ended jobs leave the table."""

    def __init__(self, place: protocol.Place, options: dict[str, Any]) -> None:
        super().__init__(place, options)
        self._runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)

    async def _connect(self) -> asyncpg.Connection:
        names = {"HOST": "host", "PORT": "port", "USER": "user", "PASSWORD": "password", "NAME": "database"}
        database = self.place.database
        return await asyncpg.connect(**{name: database[key] for key, name in names.items() if key in database})

    def prepare(self) -> None:
        self._connection = self._runner.run(self._connect())
        self._queries = Queries(AsyncpgDriver(self._connection))
        self._runner.run(self._queries.install())

    def enqueue(self, job: str, payload: dict[str, Any]) -> None:
        self._runner.run(self._queries.enqueue(job, json.dumps(payload).encode()))

    def enqueue_singly(self, job: str, payload: dict[str, Any], count: int) -> None:
        self._runner.run(self._enqueue_singly(job, json.dumps(payload).encode(), count))

    async def _enqueue_singly(self, job: str, payload: bytes, count: int) -> None:
        for _ in range(count):
            await self._queries.enqueue(job, payload)

    def enqueue_many(self, job: str, payloads: list[dict[str, Any]]) -> None:
        given = [json.dumps(payload).encode() for payload in payloads]
        self._runner.run(self._queries.enqueue([job] * len(given), given, [0] * len(given)))

    def analyse(self) -> None:
        self._runner.run(self._connection.execute("ANALYZE"))

    def left(self) -> int:
        return int(self._runner.run(self._connection.fetchval("SELECT count(*) FROM pgqueuer")))

    @asynccontextmanager
    async def _queuer(self) -> AsyncIterator[PgQueuer]:
        queuer = PgQueuer(AsyncpgDriver(await self._connect()))
        for name, handler in _HANDLERS.items():
            queuer.entrypoint(name)(handler)
        yield queuer

    def work(self) -> None:
        uvloop.run(run_worker(self._queuer, dequeue_timeout=timedelta(seconds=30), **self.options))


async def _resize_image(job: Any) -> None:
    await handlers.resize_image_soon(**handlers.PAYLOAD)


async def _nap(job: Any) -> None:
    await handlers.nap_soon(**handlers.PAYLOAD)


async def _stamp(job: Any) -> None:
    handlers.stamp(**json.loads(job.payload))


_HANDLERS: dict[str, Callable[[Any], Awaitable[None]]] = {"resize_image": _resize_image, "nap": _nap, "stamp": _stamp}
