"""SQLite in memory, where Django keeps test databases: connections share a cache, and its locks cannot be waited for.

A statement that meets such a lock fails at once with "database table is locked", whatever the timeout. So do the
application's own statements, which can't be tried again from here. So one thread at a time uses the database.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from django.db import connections

from jobqueue.clock import SYSTEM
from jobqueue.errors import DatabaseBusy

#: The wait is in pieces, so that a thread that is interrupted notices.
_LOOK_UP = 0.05

Turns = Callable[[], AbstractContextManager[object]]

_turn = threading.RLock()


def is_in_memory(alias: str) -> bool:
    """Return whether a database is in the memory of this process, where no other process finds it."""
    name = str(connections.settings[alias].get("NAME", ""))
    return (":memory:" in name or "mode=memory" in name) and connections[alias].vendor == "sqlite"


def is_shared() -> bool:
    """Return whether any database is in memory that several connections share. Handlers may use any of them."""
    return any(
        is_in_memory(alias) and "cache=shared" in str(connections.settings[alias]["NAME"]) for alias in connections
    )


def turns(limit: float | None = None) -> Turns:
    """Return the context in which a thread has its turn, for an attempt, a verb of the worker or a signal's receiver.

    It waits at most ``limit`` seconds, and then raises DatabaseBusy. If connections share no cache, it never waits.
    """
    return (lambda: _one_at_a_time(limit)) if is_shared() else nullcontext


@contextmanager
def _one_at_a_time(limit: float | None) -> Iterator[None]:
    end = None if limit is None else SYSTEM.monotonic() + limit
    while not _turn.acquire(timeout=_LOOK_UP):
        if end is not None and SYSTEM.monotonic() >= end:
            raise DatabaseBusy("Another thread of this process uses the database in memory.")
    try:
        yield
    finally:
        _turn.release()
