# mypy: disable-error-code="import-not-found"
"""saq on Redis: coroutines on one event loop."""

from __future__ import annotations

import asyncio
from typing import Any

import uvloop
from saq import Queue, Worker

from benchmarks.peers.adapters import handlers, protocol


class Adapter(protocol.Adapter):
    """Keeps no results; has no bulk call."""

    def __init__(self, place: protocol.Place, options: dict[str, Any]) -> None:
        super().__init__(place, options)
        self._runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)

    async def _connect(self) -> Queue:
        queue = Queue.from_url(self.place.address)
        await queue.connect()
        return queue

    def prepare(self) -> None:
        self._queue = self._runner.run(self._connect())

    def enqueue(self, job: str, payload: dict[str, Any]) -> None:
        self._runner.run(self._queue.enqueue(job, ttl=-1, **payload))

    def enqueue_singly(self, job: str, payload: dict[str, Any], count: int) -> None:
        self._runner.run(self._enqueue_singly(job, payload, count))

    async def _enqueue_singly(self, job: str, payload: dict[str, Any], count: int) -> None:
        for _ in range(count):
            await self._queue.enqueue(job, ttl=-1, **payload)

    def left(self) -> int:
        return int(self._runner.run(self._queue.count("incomplete")))

    def work(self) -> None:
        uvloop.run(self._work())

    async def _work(self) -> None:
        functions = [("resize_image", _resize_image), ("nap", _nap), ("stamp", _stamp)]
        await Worker(await self._connect(), functions, concurrency=self.options["concurrency"]).start()


async def _resize_image(context: Any, *, image_id: int, width: int) -> None:
    await handlers.resize_image_soon(image_id, width)


async def _nap(context: Any, *, image_id: int, width: int) -> None:
    await handlers.nap_soon(image_id, width)


async def _stamp(context: Any, *, path: str) -> None:
    handlers.stamp(path)
