"""Tests of a database that the last release migrated."""

from __future__ import annotations

from django.core.management import call_command


def test_a_missing_column_says_to_migrate(queue, alias, run):
    call_command("migrate", "jobqueue", "0015", database=alias, verbosity=0)
    try:
        said = run("list")
    finally:
        call_command("migrate", "jobqueue", database=alias, verbosity=0)
    assert (said.code, "has no job queue of this release yet" in said.err) == (3, True)
