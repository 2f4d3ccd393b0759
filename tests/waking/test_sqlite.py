"""Tests of datagrams to sockets in a private folder, and of `data_version` without them."""

from __future__ import annotations

import os
import resource
import socket
import sqlite3
import stat
from contextlib import contextmanager, suppress

import pytest
from django.db import connections

from jobqueue import runtime
from jobqueue.backends.sqlite.wake import folder, send_wake_up
from jobqueue.clock import SYSTEM
from tests.conftest import make_sql_backend


@pytest.fixture
def backend(databases, runtime_dir, settings):
    settings.JOBQUEUE = {"RUNTIME_DIR": runtime_dir}
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
    assert listener.hear(10)


def test_a_foreign_commit_is_seen_though_nobody_announces_it(listener):
    listener.hear(0)
    commit_as_a_stranger()
    started = SYSTEM.monotonic()
    assert listener.hear(10)
    assert SYSTEM.monotonic() - started < 5


def test_the_listeners_own_writes_do_not_wake_it(backend, listener):
    from jobqueue.records import Scope

    listener.hear(0)
    backend.operator.pause(Scope.QUEUE, "a")
    assert not listener.hear(0.1)


@pytest.fixture
def without_descriptor_paths(monkeypatch):
    """A system such as macOS, where a folder's descriptor has no path."""
    monkeypatch.setattr(runtime, "_has_paths_of_descriptors", lambda: False)


TROUBLES = ["a name too long for a socket", "a folder that others may enter", "a way that others may change"]


@pytest.mark.parametrize("trouble", TROUBLES)
def test_without_a_fit_folder_jobs_are_found_by_polling(
    databases, tmp_path, settings, caplog, without_descriptor_paths, trouble
):
    place = tmp_path / ("x" * 120) if "long" in trouble else tmp_path
    place.mkdir(exist_ok=True)
    settings.JOBQUEUE = {"RUNTIME_DIR": str(place)}
    if "enter" in trouble:
        folder(connections["default"]).parent.mkdir(mode=0o755)
    if "change" in trouble:
        place.chmod(0o777)
    backend = make_sql_backend("default", None)
    listener = backend.listen()
    try:
        assert "RUNTIME_DIR" in caplog.text
        assert not listener.self_test(0.1)
        backend.wake()
        assert not listener.hear(0.05)
        commit_as_a_stranger()
        assert listener.hear(10)
    finally:
        listener.close()


def test_a_folder_without_a_path_of_its_descriptor_will_do(without_descriptor_paths, backend, listener):
    assert listener.self_test(10)
    listener.close()
    assert list(folder(connections["default"]).iterdir()) == []


@pytest.mark.skipif(not runtime._has_paths_of_descriptors(), reason="a descriptor has no path here")
def test_a_long_name_is_no_trouble_where_a_descriptor_has_a_path(databases, tmp_path, settings):
    place = tmp_path / ("x" * 120)
    place.mkdir()
    settings.JOBQUEUE = {"RUNTIME_DIR": str(place)}
    listener = make_sql_backend("default", None).listen()
    try:
        assert listener.self_test(10)
    finally:
        listener.close()
    assert list(folder(connections["default"]).iterdir()) == []


def test_whatever_is_in_the_folder_stays_and_troubles_nobody(backend, listener):
    place = folder(connections["default"])
    (place / "0").mkdir()
    (place / "1").write_text("text")
    os.mkfifo(place / "2")
    (place / "3").symlink_to(place / "1")
    (place / "4").symlink_to("nowhere")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        other.bind(str(place / "5"))
    assert listener.self_test(10)
    assert {one.name for one in place.iterdir()} > {"0", "1", "2", "3", "4"}


@pytest.mark.parametrize("place", ["file", "nothing", "a\0b", "\udcff\u20ac"])
def test_a_wake_up_to_what_is_no_folder_fails_nothing(databases, tmp_path, settings, place):
    (tmp_path / "file").touch()
    settings.JOBQUEUE = {"RUNTIME_DIR": f"{tmp_path}/{place}"}
    send_wake_up(connections["default"])


@pytest.mark.parametrize("left", range(5))
def test_a_wake_up_with_few_descriptors_left_fails_nothing(listener, left):
    with descriptors_left(left):
        send_wake_up(connections["default"])


@contextmanager
def descriptors_left(count):
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = [os.dup(0) for _ in range(count + 1)]  # there may be gaps, and others beyond them
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(taken) + 1, limits[1]))
    try:
        with suppress(OSError):
            while True:
                taken.append(os.dup(0))
        for _ in range(count):
            os.close(taken.pop())
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        for one in taken:
            os.close(one)
