"""Wake-ups with LISTEN and NOTIFY. Each listener has its own connection.

The payload is empty, or says from which moment on, in seconds of the epoch, jobs were committed late.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psycopg
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg import sql

from jobqueue.backends.postgresql.silence import watch
from jobqueue.backends.wake import Listener

logger = logging.getLogger("jobqueue")

NOTIFY = "SELECT pg_notify(%s, '')"
NOTIFY_OF_LATE = "SELECT pg_notify(%s, (extract(epoch FROM @now)::float8 - %s)::text)"
_LONGEST_NAME = 63


def channel_of(connection: BaseDatabaseWrapper) -> str:
    """Return the channel of the current schema, so that two queues in one database don't wake each other."""
    cached: str | None = getattr(connection, "_jobqueue_channel", None)
    if cached is None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_schema()")
            cached = channel_name(str(cursor.fetchone()[0]))
        connection._jobqueue_channel = cached  # type: ignore[attr-defined]
    return cached


def channel_name(schema: str) -> str:
    """Return the channel's name for a schema. A long name is replaced by a digest."""
    name = f"jobqueue.{schema}"
    if len(name.encode()) <= _LONGEST_NAME and re.fullmatch(r"[\w.]+", name):
        return name
    return f"jobqueue.{hashlib.sha256(schema.encode()).hexdigest()[:32]}"


class PostgresListener(Listener):
    """A connection in autocommit that only listens. It holds no snapshot and no lock while it waits.

    ``tell`` is called with the moment from which on jobs were committed late, if a wake-up says it.
    """

    def __init__(self, alias: str, silence: float | None = None, tell: Callable[[float], object] = bool) -> None:
        self._alias = alias
        self._tell = tell
        parameters: dict[str, Any] = connections[alias].get_connection_params()
        wanted = {key: value for key, value in parameters.items() if key not in ("cursor_factory", "context")}
        channel = sql.Identifier(channel_of(connections[alias]))
        with connections[alias].wrap_database_errors:
            self._connection = psycopg.connect(**wanted, autocommit=True)
            if silence is not None:
                watch(self._connection, silence)
            self._connection.execute(sql.SQL("LISTEN {}").format(channel))

    def fileno(self) -> int:
        return self._connection.fileno()

    def hear(self, timeout: float) -> bool:
        heard = False
        with connections[self._alias].wrap_database_errors:
            for notification in self._connection.notifies(timeout=timeout, stop_after=1):
                heard = True
                if notification.payload:
                    with suppress(ValueError):  # anybody may send anything
                        self._tell(float(notification.payload))
        return heard

    def self_test(self, timeout: float = 2.0) -> bool:
        with connections[self._alias].cursor() as cursor:
            cursor.execute(NOTIFY, [channel_of(connections[self._alias])])
        arrived = self.hear(timeout)
        if not arrived:
            logger.warning(
                "No notification arrived within %s s on the database %r: a transaction pooler between may swallow "
                "them. Where none arrive, new jobs are found by polling alone.",
                timeout,
                self._alias,
            )
        return arrived

    def close(self) -> None:
        self._connection.close()
