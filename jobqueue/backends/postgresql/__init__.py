"""The backend of Postgres."""

from __future__ import annotations

from jobqueue.backends.postgresql.backend import PostgresBackend

__all__ = ["PostgresBackend"]
