"""The check of the server's connections: one for each slot of a worker, and two for its supervisor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.core.checks import CheckMessage, Tags, register
from django.core.checks import Warning as Caution
from django.db import connections

from jobqueue import conf
from jobqueue.checks.environment import told
from jobqueue.worker.options import WorkerOptions

#: The supervisor's own connections: one to work with, one to listen on.
_SUPERVISOR_CONNECTIONS = 2
_CONNECTION_LIMIT = """
    SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
           - coalesce(current_setting('reserved_connections', true)::int, 0)
"""
_DEFAULTS = WorkerOptions()


@register(conf.CHECKS, Tags.database)
def check_connections(*, databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """Check that the database server has a connection for each slot. Runs with ``check --database`` only."""
    given = databases or ()
    return [
        message for alias in given if connections[alias].vendor == "postgresql" for message in _too_many_slots(alias)
    ]


def _too_many_slots(alias: str) -> Iterator[CheckMessage]:
    processes = max(1, int(told("PROCESSES", _DEFAULTS.processes)))
    slots = processes * int(told("CONCURRENCY", _DEFAULTS.concurrency))
    with connections[alias].cursor() as cursor:
        cursor.execute(_CONNECTION_LIMIT)
        (most,) = cursor.fetchone()
    if slots + _SUPERVISOR_CONNECTIONS > most:
        yield Caution(
            f"A worker with {slots} slots may open {slots + _SUPERVISOR_CONNECTIONS} connections to {alias!r}, "
            f"and its server has {most} for all its users.",
            hint="Lower JOBQUEUE_WORKER_CONCURRENCY or JOBQUEUE_WORKER_PROCESSES, raise the server's max_connections, "
            "or put a pooler between them.",
            id="jobqueue.W008",
        )
