"""Silent servers: a connection is closed after some seconds, even if TCP would wait longer."""

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

#: The seconds for which to try to cancel a statement on the server.
_CANCEL = 1.0
#: The shortest connection timeout that libpq accepts, in seconds.
_SHORTEST_CONNECT = 2
_NEVER = float("inf")
#: The characters of a statement that a slow server reads in a second. The server is silent while it reads.
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
    """Limit the silence of the server to ``seconds`` on connections that a wrapper opens from now on.

    TCP options in the settings take precedence. Connections of a pool aren't changed, because other threads use them.
    """
    if wrapper.settings_dict.get("OPTIONS", {}).get("pool"):
        return
    options = watched_by_tcp(seconds) | wrapper.settings_dict.get("OPTIONS", {})
    wrapper.settings_dict = {**wrapper.settings_dict, "OPTIONS": options}  # a copy: other threads share the original
    connect = wrapper.get_new_connection

    def connect_and_watch(conn_params: Any) -> Any:
        return watch(connect(conn_params), seconds)

    wrapper.get_new_connection = connect_and_watch  # type: ignore[method-assign]
    if not wrapper.in_atomic_block:
        wrapper.close()


@contextmanager
def bounded(wrapper: BaseDatabaseWrapper, seconds: float) -> Iterator[None]:
    """Inside, limit the silence of the server to ``seconds``, also while a connection is made."""
    given = wrapper.settings_dict
    options = {"connect_timeout": max(_SHORTEST_CONNECT, round(seconds)), **given.get("OPTIONS", {})}
    if not options.get("pool"):  # its connections are those of all threads
        wrapper.settings_dict = {**given, "OPTIONS": options}
    try:
        wrapper.ensure_connection()
        driver: Any = wrapper.connection
        before = vars(driver).get("wait")
        watch(driver, seconds)
        try:
            yield
        finally:
            vars(driver).pop("wait", None)
            if before is not None:
                driver.wait = before
    finally:
        wrapper.settings_dict = given


def watched_by_tcp(seconds: float) -> dict[str, int]:
    """Return libpq's options for silent servers. A listener has only these, because it sends no statements."""
    third = max(1, round(seconds / 3))
    return {
        "connect_timeout": max(_SHORTEST_CONNECT, round(seconds)),
        "keepalives_idle": third,
        "keepalives_interval": third,
        "keepalives_count": 2,
        "tcp_user_timeout": round(1000 * seconds),
    }


def watch(driver: psycopg.Connection[Any], seconds: float) -> psycopg.Connection[Any]:
    """Raise OperationalError in a statement during which the server has sent and read nothing for ``seconds``.

    The statement is also cancelled over a second connection, if the server can be reached. Otherwise it could continue
    to wait for a lock, and get it after this process has given up.
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
            ready = yield wanted  # falsy ten times a second while the socket isn't ready
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
        if psycopg.capabilities.has_cancel_safe():  # the older function may block for minutes
            driver.cancel_safe(timeout=_CANCEL)
    except psycopg.Error as error:
        logger.debug("The server could not be asked to stop: %s", error)
    driver.close()
