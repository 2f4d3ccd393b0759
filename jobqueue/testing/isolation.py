"""What keeps the queue of one test apart from that of the next."""

from __future__ import annotations

from jobqueue import backends
from jobqueue.backends.memory import MemoryBackend
from jobqueue.backends.sql.backend import SqlBackend


def needs_database() -> bool:
    """Return whether the queue is in a database, which a test may use only if it says so."""
    return isinstance(backends.current(), SqlBackend)


def empty_memory() -> None:
    """Empty a queue in memory, which no transaction rolls back."""
    backend = backends.current()
    if isinstance(backend, MemoryBackend):
        backend.__init__(backend.alias)  # type: ignore[misc]  # as new: other parts of the process have this object
