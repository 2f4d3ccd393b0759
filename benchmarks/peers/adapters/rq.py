# mypy: disable-error-code="import-not-found"
"""RQ."""

from __future__ import annotations

from typing import Any

from redis import Redis
from rq import Queue, SimpleWorker
from rq.registry import StartedJobRegistry

from benchmarks.peers.adapters import handlers, protocol


class Adapter(protocol.Adapter):
    """Keeps no results, runs jobs without a fork for each; has a bulk call."""

    def __init__(self, place: protocol.Place, options: dict[str, Any]) -> None:
        super().__init__(place, options)
        self._queue = Queue(connection=Redis.from_url(place.address))

    def prepare(self) -> None:
        self._queue.connection.ping()

    def enqueue(self, job: str, payload: dict[str, Any]) -> None:
        self._queue.enqueue(getattr(handlers, job), kwargs=payload, result_ttl=0)

    def enqueue_many(self, job: str, payloads: list[dict[str, Any]]) -> None:
        handler = getattr(handlers, job)
        self._queue.enqueue_many([Queue.prepare_data(handler, kwargs=each, result_ttl=0) for each in payloads])

    def left(self) -> int:
        return int(self._queue.count) + int(StartedJobRegistry(queue=self._queue).get_job_count(cleanup=False))

    def work(self) -> None:
        SimpleWorker([self._queue], connection=self._queue.connection).work(logging_level="ERROR")
