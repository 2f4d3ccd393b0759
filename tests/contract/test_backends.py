"""The contract, run against the three backends."""

from __future__ import annotations

from jobqueue.testing.contract import BackendContract


class TestBackends(BackendContract):
    """On memory, SQLite and Postgres: `make_backend` is parametrized over them."""
