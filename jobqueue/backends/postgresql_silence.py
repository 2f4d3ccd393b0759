"""A connection that the other side has fallen silent on: it is given up after a while, whatever TCP makes of it."""

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

#: How long a server that may be there after all is asked to stop what nobody waits for any more.
_CANCEL = 1.0
#: libpq tries no connection for less.
_SHORTEST_CONNECT = 2
_NEVER = float("inf")
#: A server takes in so many characters of a statement a second, though it may be slow; meanwhile it says nothing.
_SLOWEST = 16 * 1024 * 1024

_statement = threading.local()


@contextmanager
def sending(parameters: Any) -> Iterator[None]:
    """Let a statement of this thread be silent for as much longer as its parameters are large."""
    values = parameters.values() if isinstance(parameters, dict) else parameters or ()
    _statement.size = sum(len(value) for value in values if isinstance(value, str))
    try:
        yield
    finally:
        _statement.size = 0


def bound(wrapper: BaseDatabaseWrapper, seconds: float) -> None:
    """Have what a wrapper connects to from now on be given up after so many seconds of silence.

    Where the settings say how TCP is to watch a connection, they are left alone; a pool's connections are not ours.
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
    """Say it to libpq; sockets on the same machine ignore it. It is all that a listener has, for it never asks."""
    third = max(1, round(seconds / 3))
    return {
        "connect_timeout": max(_SHORTEST_CONNECT, round(seconds)),
        "keepalives_idle": third,
        "keepalives_interval": third,
        "keepalives_count": 2,
        "tcp_user_timeout": round(1000 * seconds),
    }


def watch(driver: psycopg.Connection[Any], seconds: float) -> psycopg.Connection[Any]:
    """Have each statement break with OperationalError once the server has neither said nor taken anything for so long.

    The statement is cancelled if the server can still be reached, be it by another connection: it may wait for a lock,
    and nobody is there any more to hear that it has got it.
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
