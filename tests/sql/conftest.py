"""Fixtures for tests of query plans: tables as a migration leaves them."""

from __future__ import annotations

import pytest
from django.core.management import call_command
from django.db import connections


@pytest.fixture
def fresh(databases):
    """A function that makes a database's tables anew: no statistics, no dead rows, and no autovacuum to change that."""
    made = set()

    def make(alias):
        with connections[alias].cursor() as cursor:
            cursor.execute("DELETE FROM job_queue")
        remake(alias)
        made.add(alias)
        if connections[alias].vendor == "postgresql":
            with connections[alias].cursor() as cursor:
                cursor.execute("ALTER TABLE job_queue SET (autovacuum_enabled = false)")

    yield make
    for alias in made:
        remake(alias)


def remake(alias):
    call_command("migrate", "jobqueue", "zero", database=alias, verbosity=0)
    call_command("migrate", "jobqueue", database=alias, verbosity=0)
