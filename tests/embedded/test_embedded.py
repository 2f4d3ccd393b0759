"""Tests of processes without an embedded worker: test runs, and those that don't want or can't have one."""

from __future__ import annotations

import fcntl
import os
import re
import sqlite3
import subprocess
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import Client

from jobqueue import runtime
from jobqueue.checks import EMBEDDING, check_settings
from jobqueue.checks.sqlite import WAL_RESET_FIXED
from jobqueue.worker import embedded
from tests.worker.harness import until


@pytest.fixture(autouse=True)
def _new_sqlite(monkeypatch):
    monkeypatch.setattr(sqlite3, "sqlite_version_info", WAL_RESET_FIXED)


def threads():
    return [one.name for one in threading.enumerate() if one.name == "jobqueue-embedded"]


def test_a_test_client_starts_none(queue, settings):
    settings.MIDDLEWARE = [EMBEDDING]
    settings.ROOT_URLCONF = "tests.embedded.urls"
    settings.JOBQUEUE = {"EMBEDDED": True}
    assert Client().get("/enqueue").status_code == 200
    assert threads() == []


@pytest.mark.parametrize(
    ("line", "serves"),
    [
        (["/srv/shop/manage.py", "runserver", "8000"], True),
        (["manage.py", "runserver_plus"], True),
        (["/usr/bin/gunicorn", "shop.wsgi"], True),
        (["-c"], True),
        (["manage.py", "shell"], False),
        (["manage.py", "test"], False),
        (["/usr/bin/django-admin", "migrate"], False),
        (["/lib/django/__main__.py", "dbshell"], False),
        (["manage.py"], False),
    ],
)
def test_only_what_serves_has_one(monkeypatch, line, serves):
    monkeypatch.delattr("django.core.mail.outbox", raising=False)
    monkeypatch.setattr("sys.argv", line)
    assert embedded._is_served_here() is serves


def messages(settings, **given):
    settings.JOBQUEUE = {"EMBEDDED": True, **given}
    return [one.id for one in check_settings()]


def test_the_checks_say_what_is_missing(settings, monkeypatch):
    assert messages(settings) == ["jobqueue.E013"]
    settings.MIDDLEWARE = [EMBEDDING]
    assert messages(settings) == []
    assert messages(settings, BACKEND="jobqueue.backends.memory.MemoryBackend") == ["jobqueue.E012"]
    monkeypatch.delenv("DJANGO_SETTINGS_MODULE")  # as where settings.configure() was called
    assert messages(settings) == ["jobqueue.E012"]


def test_without_the_setting_the_middleware_does_nothing(settings):
    settings.JOBQUEUE = {"EMBEDDED": False}
    assert messages(settings, EMBEDDED=False) == []


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"EMBEDED": True}, "unknown key 'EMBEDED'. Did you mean 'EMBEDDED'?"),
        ({"EMBEDDED": True, "RUNTIME_DIR": "run"}, "RUNTIME_DIR"),
        ({"EMBEDDED": "yes"}, "EMBEDDED"),
    ],
)
def test_settings_that_will_not_do_stop_the_web_process_as_it_comes_up(settings, monkeypatch, given, sentence):
    monkeypatch.setattr(embedded, "_is_served_here", lambda: True)
    settings.JOBQUEUE = given
    with pytest.raises(ImproperlyConfigured, match=re.escape(sentence)):
        embedded.begin()
    assert embedded._Role.keeper is None


@pytest.fixture
def keep(settings, tmp_path, queue):
    """A function that starts a keeper which has something to do, and stops it after the test."""
    settings.JOBQUEUE = {"RUNTIME_DIR": str(tmp_path)}
    started = []

    def start():
        started.append(keeper := embedded.Keeper())
        keeper._wanted.set()
        keeper.start()
        return keeper

    yield start
    for keeper in started:
        keeper.stop()
        keeper._forget_in_child()  # as in a fork: none of it stays for the tests to come


def test_who_waits_for_a_turn_ends_when_told_and_holds_up_no_green_thread(keep):
    path = Path(runtime.path(embedded._lock_name()))
    path.parent.mkdir(mode=0o700)
    with path.open("w") as theirs:
        fcntl.flock(theirs, fcntl.LOCK_EX)
        keeper = keep()
        keeper.stop()
        keeper._thread.join(10)
        assert not keeper._thread.is_alive()
        assert keeper._child is None


def test_a_worker_is_started_again_also_where_it_could_not_be_started(keep, monkeypatch, caplog):
    tries = []

    def popen(*args, **options):
        tries.append(args)
        if len(tries) == 1:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        # As gevent's does, this one runs what is registered for forks in the child.
        return subprocess.Popen(["cat"], **options, preexec_fn=os.getpid)

    monkeypatch.setattr(embedded, "subprocess", SimpleNamespace(Popen=popen, PIPE=subprocess.PIPE))
    keeper = keep()
    until(lambda: keeper._child is not None, what="a worker")
    assert keeper._child.poll() is None
    assert "could not be started ([Errno 11] Resource temporarily unavailable)" in caplog.text


def test_a_lock_that_others_could_hold_for_ever_is_not_waited_for(settings, tmp_path, caplog):
    settings.JOBQUEUE = {"RUNTIME_DIR": str(tmp_path)}
    path = Path(runtime.path(embedded._lock_name()))
    path.parent.mkdir()
    path.parent.chmod(0o777)
    assert embedded._lock_opened() is None
    assert "folder is not private to this user" in caplog.text
