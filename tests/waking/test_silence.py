"""Tests of a silent server, whose connection is given up in time, and of a slow one, whose is kept."""

from __future__ import annotations

import socket
from contextlib import closing

import psycopg
import pytest
from django.db import OperationalError, connections, transaction
from psycopg.conninfo import make_conninfo

from benchmarks.databases import Place
from benchmarks.faults.proxy import Proxy
from jobqueue.clock import SYSTEM
from tests.conftest import make_sql_backend
from tests.worker.harness import until

pytestmark = pytest.mark.postgres

SILENCE = 1.0
#: A busy machine may take so much longer, and TCP takes far longer.
PATIENCE = 10.0
IS_WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


@pytest.fixture
def direct(databases):
    """A connection of somebody else's."""
    with psycopg.connect(address(), autocommit=True) as opened:
        yield opened


def address():
    known = ("dbname", "user", "password", "host", "port")
    given = connections["postgres"].get_connection_params()
    return make_conninfo(**{key: value for key, value in given.items() if key in known})


@pytest.fixture
def network(databases, monkeypatch):
    """A network that the backend's connection goes over."""
    given = connections["postgres"].settings_dict
    connections["postgres"].close()
    proxy = Proxy(Place(vendor="postgres", database=given, address=address(), runtime=""))
    monkeypatch.setitem(connections.settings, "postgres", proxy.place.database)
    before, connections["postgres"] = connections["postgres"], connections.create_connection("postgres")
    with closing(proxy):
        yield proxy
        connections["postgres"].close()
    connections["postgres"] = before


@pytest.fixture
def backend(network):
    made = make_sql_backend("postgres", None)
    made.bound_silence(SILENCE)
    return made


def ask(statement):
    with connections["postgres"].cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall()


def test_what_a_silent_server_is_asked_breaks_in_time_and_the_next_question_is_answered(backend, network):
    assert ask("SELECT 1") == [(1,)]
    network.silence()
    began = SYSTEM.monotonic()
    with pytest.raises(OperationalError, match="said nothing for 1 s"):
        ask("SELECT 2")
    assert SILENCE <= SYSTEM.monotonic() - began < PATIENCE
    connections["postgres"].close()
    assert ask("SELECT 3") == [(3,)]


def test_a_transaction_is_left_in_time_too(backend, network):
    began = SYSTEM.monotonic()
    with pytest.raises(OperationalError), transaction.atomic(using="postgres"):
        ask("SELECT 1")
        network.silence()
        ask("SELECT 2")
    assert SYSTEM.monotonic() - began < PATIENCE
    assert ask("SELECT 3") == [(3,)]


def test_a_connection_that_nobody_answers_is_given_up(backend, network):
    network.swallows = True
    began = SYSTEM.monotonic()
    with pytest.raises(OperationalError):
        ask("SELECT 1")
    assert SYSTEM.monotonic() - began < PATIENCE


def test_listening_does_not_wait_for_ever(backend, network):
    ask("SELECT 1")
    network.swallows = True
    began = SYSTEM.monotonic()
    with pytest.raises(OperationalError):
        backend.listen()
    assert SYSTEM.monotonic() - began < PATIENCE


def test_what_is_given_up_is_stopped_so_that_nobody_is_left_waiting_for_a_lock(backend, direct):
    with direct.transaction():
        direct.execute("LOCK TABLE job_queue_pause")
        with pytest.raises(OperationalError):
            ask("SELECT * FROM job_queue_pause")
        until(lambda: direct.execute(IS_WAITING).fetchone() == (0,), PATIENCE, "nobody waits for the lock")


def test_an_answer_that_comes_in_pieces_is_waited_for(backend):
    began = SYSTEM.monotonic()
    rows = ask("SELECT repeat('x', 20000), pg_sleep(0.25) FROM generate_series(1, 8)")
    assert len(rows) == 8
    assert SYSTEM.monotonic() - began > 1.5 * SILENCE


def test_tcp_is_told_to_watch_what_never_asks(backend):
    listener = backend.listen()
    try:
        with socket.socket(fileno=socket.dup(listener.fileno())) as tcp:
            assert tcp.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            assert tcp.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 1
            assert tcp.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL) == 1
            assert tcp.getsockopt(socket.IPPROTO_TCP, 18) == 1000  # TCP_USER_TIMEOUT, in milliseconds
    finally:
        listener.close()


def test_what_the_settings_say_of_tcp_stands_and_other_threads_keep_their_settings(network):
    own = network.place.database | {"OPTIONS": network.place.database["OPTIONS"] | {"keepalives_idle": 77}}
    connections["postgres"].settings_dict = own
    make_sql_backend("postgres", None).bound_silence(SILENCE)
    told = connections["postgres"].get_connection_params()
    assert (told["keepalives_idle"], told["connect_timeout"], told["tcp_user_timeout"]) == (77, 2, 1000)
    assert "tcp_user_timeout" not in own["OPTIONS"]
