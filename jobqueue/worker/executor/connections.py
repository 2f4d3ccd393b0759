"""Django's database connections between two jobs of a thread: kept, healthy, and outside transactions."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from jobqueue.backends.sqlite.lock import give_up_turn

logger = logging.getLogger("jobqueue")


def renew() -> None:
    """Roll back open transactions, close unusable connections, and mark the other connections for a check.

    The check happens at the next handler's first query, because the server may have closed the connection meanwhile.
    CONN_MAX_AGE is for requests; a slot keeps its connections as long as it has jobs.
    """
    connection: Any
    for connection in connections.all(initialized_only=True):
        if connection.connection is not None:
            _tidy(connection)
            connection.health_check_enabled = True
            connection.health_check_done = False


def _tidy(connection: BaseDatabaseWrapper) -> None:
    if _is_closed(connection):
        _give_up(connection)
    elif connection.in_atomic_block or connection.autocommit != connection.settings_dict["AUTOCOMMIT"]:
        logger.warning("A handler left a transaction open on %r. It was rolled back.", connection.alias)
        _give_up(connection)
    elif connection.errors_occurred:
        _keep_if_usable(connection)
    if connection.queries_logged:
        connection.queries_log.clear()


def _is_closed(connection: BaseDatabaseWrapper) -> bool:
    """Return whether a handler has closed the driver's connection behind Django's back."""
    driver: Any = connection.connection
    if connection.vendor != "sqlite":
        return bool(getattr(driver, "closed", False))
    try:
        return bool(driver.total_changes < 0)
    except sqlite3.ProgrammingError:
        return True


def _keep_if_usable(connection: BaseDatabaseWrapper) -> None:
    if connection.is_usable():
        connection.errors_occurred = False
    else:
        connection.close()


def give_up_all() -> None:
    """Close all connections, in whatever state an interrupted handler left them, and give up the turn."""
    give_up_turn()
    for connection in connections.all(initialized_only=True):
        if connection.connection is not None:
            _give_up(connection)


def _give_up(connection: BaseDatabaseWrapper) -> None:
    driver = connection.connection
    del connections[connection.alias]  # the wrapper may stay in a transaction for ever
    try:
        if driver is not None:
            with closing(driver):
                if connection.vendor == "sqlite":  # otherwise it stays open while an error refers to a cursor
                    driver.rollback()
    except Exception:  # it may be broken in any way
        logger.debug("A connection could not be closed", exc_info=True)
