"""The database of the queue, if it has one."""

from __future__ import annotations

from jobqueue.backends.base import Backend

#: The module of the class that all backends in databases inherit from.
_OF_DATABASES = "jobqueue.backends.sql.backend"


def database_of(backend: Backend) -> str | None:
    """Return the alias of the database that a backend is in, or ``None`` if it is in no database of Django."""
    # By name: the class loads models, and ``jobqueue.testing`` can be imported before Django is set up.
    is_sql = any(one.__module__ == _OF_DATABASES for one in type(backend).__mro__)
    return str(getattr(backend, "alias", "")) if is_sql else None
