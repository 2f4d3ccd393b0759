# mypy: disable-error-code="import-not-found"
"""Dramatiq on Redis."""

from __future__ import annotations

import signal
from typing import Any

from dramatiq import Worker, actor
from dramatiq.brokers.redis import RedisBroker

from benchmarks.peers.adapters import handlers, protocol


class Adapter(protocol.Adapter):
    """Keeps no results; has no bulk call. A message stays in its hash until it is acknowledged."""

    def __init__(self, place: protocol.Place, options: dict[str, Any]) -> None:
        super().__init__(place, options)
        self._broker = RedisBroker(url=place.address)
        self._actors = {
            handler.__name__: actor(handler, broker=self._broker)
            for handler in (handlers.resize_image, handlers.nap, handlers.stamp)
        }

    def prepare(self) -> None:
        self._broker.client.ping()

    def enqueue(self, job: str, payload: dict[str, Any]) -> None:
        self._actors[job].send(**payload)

    def left(self) -> int:
        return int(self._broker.client.hlen("dramatiq:default.msgs"))

    def work(self) -> None:
        worker = Worker(self._broker, worker_threads=self.options["threads"], worker_timeout=self.options["timeout"])
        worker.queue_prefetch = self.options["prefetch"]
        worker.start()
        signal.sigwait({signal.SIGTERM, signal.SIGINT})
        worker.stop()
