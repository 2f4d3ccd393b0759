"""The database of the queue, if it has one."""

from __future__ import annotations

from jobqueue.backends.base import Backend


def database_of(backend: Backend) -> str | None:
    """Return the alias of the database that a backend is in, or ``None`` if it is in no database of Django."""
    # Only these have an alias. Their class loads models, and ``jobqueue.testing`` can be imported before Django's setup.
    return getattr(backend, "alias", None)
