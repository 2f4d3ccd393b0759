"""Tests of LISTEN and NOTIFY, with and without a pooler."""

from __future__ import annotations

import selectors
import socket

import psycopg
import pytest
from django.db import OperationalError, connections

from jobqueue.backends.postgresql.wake import PostgresListener, channel_name
from jobqueue.testing.contract.harness import put, request
from jobqueue.worker.wake_listener import WakeListener
from tests.conftest import make_sql_backend
from tests.waking.proxy import pooler

pytestmark = pytest.mark.postgres


@pytest.fixture
def backend(databases):
    return make_sql_backend("postgres", None)


def _connect_to_postgres():
    """Open what libpq would: a socket file's, or a port's."""
    with psycopg.connect(**_parameters()) as direct:
        host, port = direct.info.host, direct.info.port
    if host.startswith("/"):
        upstream = socket.socket(socket.AF_UNIX)
        upstream.connect(f"{host}/.s.PGSQL.{port}")
        return upstream
    return socket.create_connection((host, port))


def _parameters():
    given = connections["postgres"].get_connection_params()
    return {key: value for key, value in given.items() if key in ("dbname", "user", "password", "host", "port")}


def test_the_self_test_hears_itself(backend):
    listener = backend.listen()
    try:
        assert listener.self_test()
    finally:
        listener.close()


def test_the_self_test_tells_when_a_pooler_swallows_notifications(backend, monkeypatch, caplog):
    with pooler(_connect_to_postgres) as port, monkeypatch.context() as patch:
        given = behind(port)
        patch.setattr(connections["postgres"], "get_connection_params", lambda: dict(given))
        listener = PostgresListener("postgres")
        try:
            assert not listener.self_test(timeout=0.5)
            assert "polling" in caplog.text
        finally:
            listener.close()
            connections["postgres"].close()


def behind(port):
    """The parameters of a connection that goes through a local port."""
    given = connections["postgres"].get_connection_params() | {"host": "127.0.0.1", "port": port, "sslmode": "disable"}
    if "user" not in given:
        with psycopg.connect(**_parameters()) as direct:
            given["user"] = direct.info.user
    return given


@pytest.fixture
def ear(backend):
    """Make an ear as a worker does, of the backend's."""
    with selectors.DefaultSelector() as selector:
        made = WakeListener(backend, selector)
        yield made
        made.close()


def cycle(backend):
    """Do a cycle, and list what the session has prepared of it."""
    backend.cycle("me", (), request())
    with connections["postgres"].cursor() as cursor:
        cursor.execute("SELECT name FROM pg_prepared_statements WHERE statement LIKE '%%taken AS%%'")
        return [name for (name,) in cursor.fetchall()]


def test_a_worker_that_hears_itself_prepares_its_cycle(backend, ear):
    assert cycle(backend) == []
    ear.open()
    assert (backend.owns_session, len(cycle(backend))) == (True, 1)


def test_behind_a_pooler_nothing_is_prepared_and_the_session_is_left_alone(backend, ear, monkeypatch):
    with pooler(_connect_to_postgres) as port, monkeypatch.context() as patch:
        given = behind(port)
        patch.setattr(connections["postgres"], "get_connection_params", lambda: dict(given))
        ear.open()
        assert (backend.owns_session, cycle(backend)) == (False, [])
        with connections["postgres"].cursor() as cursor:
            cursor.execute("SHOW enable_seqscan")
            assert cursor.fetchone() == ("on",)
        ear.close()
        connections["postgres"].close()


def test_what_was_prepared_and_is_gone_is_trouble_once(backend, ear):
    """A failover may lead through a pooler that was not there before."""
    ear.open()
    put(backend)
    (name,) = cycle(backend)
    with connections["postgres"].cursor() as cursor:
        cursor.execute(f"DEALLOCATE {name}")
    job_id = put(backend)
    with pytest.raises(OperationalError, match="can no longer be used"):
        backend.cycle("me", (), request())
    assert not backend.owns_session
    assert [claim.id for claim in backend.cycle("me", (), request()).claims] == [job_id]


def test_a_listener_holds_no_transaction_open(backend):
    listener = backend.listen()
    try:
        with connections["postgres"].cursor() as cursor:
            cursor.execute(
                "SELECT state, xact_start FROM pg_stat_activity "
                "WHERE query LIKE 'LISTEN%%' AND datname = current_database()"
            )
            assert cursor.fetchall() == [("idle", None)]
    finally:
        listener.close()


def test_a_notification_is_sent_after_the_commit_and_not_with_it(backend):
    listener = backend.listen()
    try:
        with backend.atomic():
            backend.on_commit(backend.wake)
            assert not listener.hear(0.05)
        assert listener.hear(10)
    finally:
        listener.close()


def test_a_channel_carries_its_schemas_name():
    assert channel_name("public") == "jobqueue.public"


def test_schemas_with_long_names_are_told_apart():
    names = {channel_name("x" * 60 + end) for end in "ab"}
    assert len(names) == 2
    assert all(len(name) <= 63 for name in names)
