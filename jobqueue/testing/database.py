"""The database of the queue, if it has one."""

from __future__ import annotations

from django.utils.module_loading import import_string

from jobqueue.backends.base import Backend


def database_of(backend: Backend) -> str | None:
    """Return the alias of the database that a backend is in, or ``None`` if it is in no database of Django."""
    # The module loads models, which Django must be set up for. ``jobqueue.testing`` can be imported before that.
    of_databases = import_string("jobqueue.backends.sql.backend.SqlBackend")
    return str(backend.alias) if isinstance(backend, of_databases) else None
