"""The database of the queue, if it has one."""

from __future__ import annotations

from jobqueue.backends.base import Backend


def database_of(backend: Backend) -> str | None:
    """Return the alias of the database that a backend is in, or ``None`` if it is in no database of Django."""
    # The module loads models, which Django must be set up for. ``jobqueue.testing`` can be imported before that.
    from jobqueue.backends.sql.backend import SqlBackend

    return backend.alias if isinstance(backend, SqlBackend) else None
