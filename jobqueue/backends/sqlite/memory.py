"""SQLite in memory, as in Django's test databases: connections share a cache, and can't wait for its locks.

A statement that meets such a lock fails at once with "database table is locked", whatever the timeout. This package
can't repeat statements of the application, so only one thread at a time uses the database.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from django.db import connections

from jobqueue.clock import SYSTEM
from jobqueue.errors import DatabaseBusy

#: The wait is split into pieces of this many seconds, so that an interrupted thread notices.
_LOOK_UP = 0.05

Turns = Callable[[], AbstractContextManager[object]]

_turn = threading.RLock()


def is_in_memory(alias: str) -> bool:
    """Return whether a database is in the memory of this process, so that no other process can use it."""
    name = str(connections.settings[alias].get("NAME", ""))
    return (":memory:" in name or "mode=memory" in name) and connections[alias].vendor == "sqlite"


def is_shared() -> bool:
    """Return whether connections share any database in memory. Handlers may use any database of the project."""
    return any(
        is_in_memory(alias) and "cache=shared" in str(connections.settings[alias]["NAME"]) for alias in connections
    )


def turns(limit: float | None = None) -> Turns:
    """Return a context manager that lets one thread at a time work, for attempts, supervisors and signal receivers.

    A thread that has waited for ``limit`` seconds gets DatabaseBusy. If connections share no cache, no thread waits.
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
