"""Where a measure finds what it needs: the backend, the bare driver beside it, and an empty table when it asks."""

from __future__ import annotations

import io

from django.core.management import call_command
from django.db import connections
from django.utils.module_loading import import_string

from benchmarks.databases import Place
from benchmarks.raw import Raw
from jobqueue import backends
from jobqueue.backends.base import Backend

RAW = {"sqlite": "benchmarks.raw_sqlite.RawSqlite", "postgres": "benchmarks.raw_postgres.RawPostgres"}
REPETITIONS = 3


class Site:
    """One database under measurement."""

    def __init__(self, place: Place, *, quick: bool) -> None:
        self.place = place
        self.quick = quick
        self.raw: Raw = import_string(RAW[place.vendor])(place.address)

    @property
    def backend(self) -> Backend:
        """The backend that the public API uses."""
        return backends.current()

    def size(self, full: int, quick: int) -> int:
        """Choose how much of something there is to be."""
        return quick if self.quick else full

    def fresh(self) -> None:
        """Start with newly migrated tables that no planner has ever seen statistics of."""
        connections.close_all()
        self.raw.empty()
        call_command("migrate", verbosity=0, stdout=io.StringIO())

    def reconnect(self) -> None:
        """Start anew on the same tables, so that nothing planned earlier is left."""
        connections.close_all()
        self.raw.close()
        self.raw.connect()

    def close(self) -> None:
        """Leave the database alone."""
        connections.close_all()
        self.raw.close()
