"""The server of a worker's metrics, which is a thread of the supervisor's process."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from jobqueue.worker.supervisor.supervisor import Supervisor


class _Collector:
    """Reads numbers that the supervisor keeps. It calls neither the database nor the supervisor."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor

    def collect(self) -> Iterator[Metric]:
        supervisor, context = self._supervisor, self._supervisor.context
        turns, database, executors = supervisor.turns, context.database, context.executors
        for name, documentation, value in (
            ("turns", "Turns of the supervisor.", turns.number),
            ("turn_seconds", "How long its turns took.", turns.seconds),
            ("database_calls", "Calls of the database.", database.calls),
            ("database_wait_seconds", "How long it waited for the database.", database.waited),
            ("database_recoveries", "How often the database came back.", database.recoveries),
            (
                "executors_started",
                "Executors started; those beyond the number of processes are restarts.",
                executors.started,
            ),
            ("jobs_taken", "Jobs that were claimed.", supervisor.loop.taken),
        ):
            yield CounterMetricFamily(f"jobqueue_process_{name}", documentation, value=value)
        slots = executors.processes * executors.plan.slots
        for name, documentation, value in (
            ("longest_turn_seconds", "The longest turn so far.", turns.longest),
            ("database_lost", "Whether the database is out of reach: 1 or 0.", database.is_lost),
            ("executors", "Executors.", len(executors.links)),
            ("slots", "Slots of the executors.", slots),
            ("claims", "Claims that are held, with those whose outcome isn't stored yet.", len(context.claims)),
        ):
            yield GaugeMetricFamily(f"jobqueue_process_{name}", documentation, value=value)


def serve(supervisor: Supervisor, host: str, port: int) -> Callable[[], None]:
    """Start the server, and return a function that stops it."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(supervisor))
    server, thread = start_http_server(port, host, registry)

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return stop
