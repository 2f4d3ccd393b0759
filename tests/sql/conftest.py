"""Fixtures for tests of query plans: tables as a migration leaves them."""

from __future__ import annotations

from functools import cache

import pytest
from django.core.management import call_command
from django.db import connections, transaction


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
    """Drop and create the tables by the statements of the migrations alone: Django takes long to find them."""
    statements = definitions(alias)
    with transaction.atomic(using=alias), connections[alias].cursor() as cursor:
        for sql, params in statements:
            cursor.execute(sql, params)


@cache
def definitions(alias):
    """Migrate a database back and forth; return the statements that defined its tables."""
    found = []

    def note(execute, sql, params, many, context):
        if sql.lstrip().upper().startswith(("ALTER", "COMMENT", "CREATE", "DROP")):
            found.append((sql, params))
        return execute(sql, params, many, context)

    with connections[alias].execute_wrapper(note):
        call_command("migrate", "jobqueue", "zero", database=alias, verbosity=0)
        call_command("migrate", "jobqueue", database=alias, verbosity=0)
    return tuple(found)
