"""Datagrams to sockets in a private folder, and `data_version` where nobody sends any."""

from __future__ import annotations

import socket
import sqlite3
import stat

import pytest
from django.db import connections

from jobqueue.backends.sqlite_wake import folder
from jobqueue.clock import SYSTEM
from tests.conftest import make_sql_backend


@pytest.fixture
def backend(databases, tmp_path, settings):
    settings.JOBQUEUE = {"RUNTIME_DIR": str(tmp_path)}
    return make_sql_backend("default", None)


@pytest.fixture
def listener(backend):
    listener = backend.listen()
    yield listener
    listener.close()


def commit_as_a_stranger():
    stranger = sqlite3.connect(connections["default"].settings_dict["NAME"])
    with stranger:
        stranger.execute(
            "INSERT INTO job_queue_pause (scope, name, reason, paused_at) "
            "VALUES ('queue', 'a', '', '2026-01-16T12:00:00Z')"
        )
    stranger.close()


def test_the_folder_belongs_to_this_user_alone(listener):
    place = folder(connections["default"])
    assert [stat.S_IMODE(one.stat().st_mode) for one in (place, place.parent)] == [0o700, 0o700]
    assert len(list(place.iterdir())) == 1


def test_a_listener_leaves_no_socket_behind(backend):
    backend.listen().close()
    assert list(folder(connections["default"]).iterdir()) == []


def test_the_socket_of_a_dead_listener_is_removed(backend, listener):
    place = folder(connections["default"])
    dead = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    dead.bind(str(place / "dead"))
    dead.close()
    backend.wake()
    assert not (place / "dead").exists()
    assert listener.wait(10)


def test_a_foreign_commit_is_seen_though_nobody_announces_it(listener):
    listener.wait(0)
    commit_as_a_stranger()
    started = SYSTEM.monotonic()
    assert listener.wait(10)
    assert SYSTEM.monotonic() - started < 5


def test_the_listeners_own_writes_do_not_wake_it(backend, listener):
    from jobqueue.records import Scope

    listener.wait(0)
    backend.pause(Scope.QUEUE, "a")
    assert not listener.wait(0.1)


@pytest.mark.parametrize("trouble", ["a name too long for a socket", "a folder that others may enter"])
def test_without_a_fit_folder_jobs_are_found_by_polling(databases, tmp_path, settings, caplog, trouble):
    place = tmp_path / ("x" * 120) if "long" in trouble else tmp_path
    place.mkdir(exist_ok=True)
    settings.JOBQUEUE = {"RUNTIME_DIR": str(place)}
    if "others" in trouble:
        folder(connections["default"]).parent.mkdir(mode=0o755)
    backend = make_sql_backend("default", None)
    listener = backend.listen()
    try:
        assert "RUNTIME_DIR" in caplog.text
        assert not listener.self_test(0.1)
        backend.wake()
        assert not listener.wait(0.05)
        commit_as_a_stranger()
        assert listener.wait(10)
    finally:
        listener.close()
