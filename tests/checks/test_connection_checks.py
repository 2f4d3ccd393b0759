"""Tests of the check of the server's connections, which only runs if a database is named."""

from __future__ import annotations

import re

import pytest
from django.core.checks import WARNING, Tags, run_checks
from django.core.management import call_command
from django.db import connections

from jobqueue.checks import check_connections


@pytest.fixture
def most(databases):
    """How many connections the Postgres of this suite has for its users."""
    with connections["postgres"].cursor() as cursor:
        cursor.execute(
            "SELECT sum(CASE WHEN name = 'max_connections' THEN setting::int ELSE -setting::int END) FROM pg_settings "
            "WHERE name IN ('max_connections', 'superuser_reserved_connections', 'reserved_connections')"
        )
        return int(cursor.fetchone()[0])


def _checked(*aliases):
    return check_connections(databases=list(aliases))


def test_without_a_named_database_nothing_is_asked():
    assert check_connections() == []
    assert set(check_connections.tags) == {Tags.database, "jobqueue"}


@pytest.mark.sqlite
def test_sqlite_has_connections_for_all(databases, monkeypatch):
    monkeypatch.setenv("JOBQUEUE_WORKER_CONCURRENCY", "10000")
    assert _checked("default") == []


@pytest.mark.postgres
def test_a_worker_as_it_comes_suits_a_server_as_it_comes(most):
    assert most > 12
    assert _checked("postgres") == []


@pytest.mark.postgres
@pytest.mark.parametrize("beyond", [0, 1])
def test_w008_more_slots_than_connections(most, monkeypatch, beyond):
    monkeypatch.setenv("JOBQUEUE_WORKER_CONCURRENCY", str(most - 2 + beyond))
    found = _checked("default", "postgres")
    assert [message.id for message in found] == ["jobqueue.W008"] * beyond
    for message in found:
        assert message.level == WARNING
        assert "'postgres'" in message.msg
        assert re.search(rf"\b{most - 1} slots\b.*\b{most + 1} connections\b.*\b{most}\b", message.msg)
        assert "JOBQUEUE_WORKER_CONCURRENCY" in message.hint


@pytest.mark.postgres
@pytest.mark.parametrize(("processes", "warns"), [("1", False), ("0", False), ("2", True), ("", False), ("two", False)])
def test_w008_counts_the_slots_of_all_processes(most, monkeypatch, processes, warns):
    monkeypatch.setenv("JOBQUEUE_WORKER_CONCURRENCY", str(most - 2))
    monkeypatch.setenv("JOBQUEUE_WORKER_PROCESSES", processes)
    assert bool(_checked("postgres")) is warns


@pytest.mark.postgres
@pytest.mark.parametrize("value", ["many", "-1", "inf", "nan", ""])
def test_a_value_that_will_not_do_is_left_to_the_worker(most, monkeypatch, value):
    monkeypatch.setenv("JOBQUEUE_WORKER_CONCURRENCY", value)
    assert _checked("postgres") == []


@pytest.mark.postgres
def test_w008_is_told_by_check_only_where_the_database_is_named(most, monkeypatch, capsys):
    monkeypatch.setenv("JOBQUEUE_WORKER_CONCURRENCY", str(most))
    assert "jobqueue.W008" not in [message.id for message in run_checks()]
    call_command("check", databases=["postgres"])
    assert "jobqueue.W008" in capsys.readouterr().err
