# mypy: disable-error-code="import-not-found"
"""Celery on Redis."""

from __future__ import annotations

from typing import Any

from celery import Celery

from benchmarks.peers.adapters import handlers, protocol

_QUIET = ("--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel=ERROR")


class Adapter(protocol.Adapter):
    """Keeps no results, acknowledges early, as is its default; has no bulk call."""

    def __init__(self, place: protocol.Place, options: dict[str, Any]) -> None:
        super().__init__(place, options)
        self._app = Celery("bench", broker=place.address)
        self._app.conf.update(task_ignore_result=True, worker_prefetch_multiplier=options["prefetch"])
        self._tasks = {
            handler.__name__: self._app.task(handler, name=handler.__name__)
            for handler in (handlers.resize_image, handlers.nap, handlers.stamp)
        }

    def prepare(self) -> None:
        self._broker = self._app.connection_for_write().channel().client

    def enqueue(self, job: str, payload: dict[str, Any]) -> None:
        self._tasks[job].apply_async(kwargs=payload)

    def left(self) -> int:
        return int(self._broker.llen("celery")) + int(self._broker.hlen("unacked"))

    def work(self) -> None:
        self._app.worker_main(["worker", *self.options["command"], *_QUIET])
