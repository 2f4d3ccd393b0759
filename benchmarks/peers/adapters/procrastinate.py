# mypy: disable-error-code="import-not-found"
"""Procrastinate: coroutines on one event loop, over psycopg's pool."""

from __future__ import annotations

from typing import Any

import uvloop
from procrastinate import App, PsycopgConnector, SyncPsycopgConnector

from benchmarks.peers.adapters import handlers, protocol


class Adapter(protocol.Adapter):
    """Enqueues through its synchronous connector, as a web application does; has a bulk call."""

    def __init__(self, place: protocol.Place, options: dict[str, Any]) -> None:
        super().__init__(place, options)
        self._connector = SyncPsycopgConnector(conninfo=place.address)
        self._app = App(connector=self._connector)
        self._tasks = self._register(self._app)

    @staticmethod
    def _register(app: App) -> dict[str, Any]:
        return {
            "resize_image": app.task(handlers.resize_image_soon, name="resize_image"),
            "nap": app.task(handlers.nap_soon, name="nap"),
            "stamp": app.task(handlers.stamp_soon, name="stamp"),
        }

    def prepare(self) -> None:
        self._app.open()
        self._app.schema_manager.apply_schema()

    def enqueue(self, job: str, payload: dict[str, Any]) -> None:
        self._tasks[job].defer(**payload)

    def enqueue_many(self, job: str, payloads: list[dict[str, Any]]) -> None:
        self._tasks[job].batch_defer(*payloads)

    def analyse(self) -> None:
        self._connector.execute_query("ANALYZE")

    def left(self) -> int:
        query = "SELECT count(*) AS count FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"
        return int(self._connector.execute_query_one(query)["count"])

    def work(self) -> None:
        app = App(connector=PsycopgConnector(conninfo=self.place.address))
        self._register(app)
        uvloop.run(self._work(app))

    async def _work(self, app: App) -> None:
        async with app.open_async():
            await app.run_worker_async(**self.options["worker"])
