"""Fixtures of the attacks: admin, commands, workers, and SQL as other programs write it."""

from __future__ import annotations

import pytest
from django.db import connections

from tests.admin.conftest import job_in, operator, sign_in
from tests.attacks.hostile import vandal
from tests.cli.conftest import run, worker
from tests.worker.conftest import jobs, ledger, start_worker

__all__ = ["job_in", "jobs", "ledger", "operator", "run", "sign_in", "start_worker", "worker"]


@pytest.fixture
def sql(alias):
    """A function that runs a statement past everything that this package checks."""

    def execute(statement, *values):
        with connections[alias].cursor() as cursor:
            cursor.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

    return execute


@pytest.fixture
def foreign(alias, settings):
    """A foreign program's own connection to the database of the queue."""
    # What is forged may have ended long ago, and has to stay.
    settings.JOBQUEUE = {"DATABASE": alias, "RETENTION": []}
    with vandal(alias) as found:
        yield found
        found.clear()
