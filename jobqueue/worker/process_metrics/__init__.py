"""The metrics of a worker's own process, for Prometheus: how long its turns take, and what it waits for.

The metrics of the queue are not here, because each worker would tell them again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from jobqueue.errors import InvalidOption
from jobqueue.worker.supervisor.supervisor import Supervisor

#: The address by default: the metrics have no token.
LOOPBACK = "127.0.0.1"
#: Loaded if the metrics are asked for, because only the extra "prometheus" installs what it imports.
_SERVER = "jobqueue.worker.process_metrics.server"


@contextmanager
def served(supervisor: Supervisor) -> Iterator[None]:
    """Serve the metrics while a supervisor runs, if ``--metrics-port`` is given."""
    options = supervisor.context.options
    host = options.metrics_host or LOOPBACK
    if options.metrics_port is None:
        yield
        return
    try:
        serve = import_module(_SERVER).serve
    except ModuleNotFoundError as error:
        if error.name != "prometheus_client":
            raise
        raise InvalidOption("--metrics-port", "needs prometheus_client: install django-jobqueue[prometheus]") from error
    try:
        stop = serve(supervisor, host, options.metrics_port)
    except OSError as error:
        where = f"{host}:{options.metrics_port}"
        raise InvalidOption("--metrics-port", f"cannot be used, because {where} cannot be opened: {error}") from error
    try:
        yield
    finally:
        stop()
