"""The surroundings of a measurement: the backend, the bare driver, and an empty table on request."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager

from django.core.management import call_command
from django.db import connections
from django.utils.module_loading import import_string

from benchmarks.databases import Place, postgres_place, sqlite_place
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
        """Return the full or the reduced size, by the run's mode."""
        return quick if self.quick else full

    def fresh(self) -> None:
        """Start with newly migrated tables without statistics."""
        connections.close_all()
        self.raw.empty()
        call_command("migrate", verbosity=0, stdout=io.StringIO())

    def reconnect(self) -> None:
        """Reconnect to the same tables, so that no cached plans are left."""
        connections.close_all()
        self.raw.close()
        self.raw.connect()

    def close(self) -> None:
        """Close all connections to the database."""
        connections.close_all()
        self.raw.close()


@contextmanager
def site_on(vendor: str) -> Iterator[Site]:
    """Measure on a database of this vendor, which is made for it and removed at the end."""
    with sqlite_place() if vendor == "sqlite" else postgres_place() as place:
        place.configure()
        site = Site(place, quick=False)
        try:
            yield site
        finally:
            site.close()
