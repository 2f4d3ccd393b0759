"""Silent servers: a connection is given up after a while, even if TCP would wait longer."""

from __future__ import annotations

import logging
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
from django.db.backends.base.base import BaseDatabaseWrapper

from jobqueue.clock import SYSTEM

T = TypeVar("T")

logger = logging.getLogger("jobqueue")

#: How long to try to cancel a statement on a server that may still be there.
_CANCEL = 1.0
#: libpq accepts no shorter timeout.
_SHORTEST_CONNECT = 2
_NEVER = float("inf")
#: How many characters of a statement a slow server reads in a second. It is silent while it reads.
_SLOWEST = 16 * 1024 * 1024

_statement = threading.local()


@contextmanager
def sending(parameters: Any) -> Iterator[None]:
    """Allow a statement of this thread a longer silence if its parameters are large."""
    values = parameters.values() if isinstance(parameters, dict) else parameters or ()
    _statement.size = sum(len(value) for value in values if isinstance(value, str))
    try:
        yield
    finally:
        _statement.size = 0


def bound(wrapper: BaseDatabaseWrapper, seconds: float) -> None:
    """Give up connections that a wrapper opens from now on after so many seconds of silence.

    Options of TCP in the settings are left alone. So are the connections of a pool, which others use too.
    """
    if wrapper.settings_dict.get("OPTIONS", {}).get("pool"):
        return
    options = watched_by_tcp(seconds) | wrapper.settings_dict.get("OPTIONS", {})
    wrapper.settings_dict = {**wrapper.settings_dict, "OPTIONS": options}  # this thread's; others share the original
    connect = wrapper.get_new_connection

    def connect_and_watch(conn_params: Any) -> Any:
        return watch(connect(conn_params), seconds)

    wrapper.get_new_connection = connect_and_watch  # type: ignore[method-assign]
    if not wrapper.in_atomic_block:
        wrapper.close()


def watched_by_tcp(seconds: float) -> dict[str, int]:
    """Return the options of libpq. A listener, which sends no statements, has nothing else. Local sockets ignore it."""
    third = max(1, round(seconds / 3))
    return {
        "connect_timeout": max(_SHORTEST_CONNECT, round(seconds)),
        "keepalives_idle": third,
        "keepalives_interval": third,
        "keepalives_count": 2,
        "tcp_user_timeout": round(1000 * seconds),
    }


def watch(driver: psycopg.Connection[Any], seconds: float) -> psycopg.Connection[Any]:
    """Break each statement with OperationalError once the server has sent and read nothing for that long.

    If the server can be reached over a second connection, the statement is also cancelled there. Otherwise it might go
    on waiting for a lock, and get it after this process has given up.
    """
    wait = driver.wait

    def watched(steps: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
        ready, silent_since = None, _NEVER
        longest = seconds + getattr(_statement, "size", 0) / _SLOWEST
        while True:
            try:
                wanted = steps.send(ready)
            except StopIteration as end:
                answer: T = end.value
                return answer
            ready = yield wanted  # nothing, ten times a second, as long as the socket has no news
            if ready:
                silent_since = _NEVER
                continue
            silent_since = min(silent_since, SYSTEM.monotonic())
            if SYSTEM.monotonic() - silent_since > longest:
                _give_up(driver)
                raise psycopg.OperationalError(
                    f"the server has said nothing for {longest:.3g} s: it is gone, or waits for a lock"
                )

    driver.wait = lambda steps, *rest, **named: wait(watched(steps), *rest, **named)  # type: ignore[method-assign]
    return driver


def _give_up(driver: psycopg.Connection[Any]) -> None:
    try:
        if psycopg.capabilities.has_cancel_safe():  # the older way of asking may itself take minutes
            driver.cancel_safe(timeout=_CANCEL)
    except psycopg.Error as error:
        logger.debug("The server could not be asked to stop: %s", error)
    driver.close()
