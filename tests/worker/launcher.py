"""The launchers of workers: processes that have loaded what workers load, and fork them.

To load Python's, Django's and this package's modules, and to make job types, takes most of the computing of a short
test. A forked worker runs ``python -m django runworker`` as one of its own would, in its own session, with its own
environment and output. One launcher has loaded all apps of ``tests.worker.settings``, and its workers read only the
settings again. The other has loaded what comes before settings; its workers have settings or apps of their own.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

import django
from django.conf import empty, settings
from django.db import connections

from jobqueue import conf
from tests.constants import change

ROOT = Path(__file__).resolve().parents[2]
#: A variable by which ``/proc`` tells whose process one is, and how long its value is.
MARK, LENGTH = "JOBQUEUE_TEST_WORKER", 32
#: What can be loaded before there are settings, and brings the rest.
MODULES = (
    "django.contrib.auth.hashers",
    "django.core.mail",
    "django.core.management",
    "django.db.backends.sqlite3.base",
    "django.db.migrations.executor",
    "django.template.defaultfilters",
    "django.urls",
    "jobqueue.api",
    "jobqueue.worker.executor.executor",
    "jobqueue.worker.zygote.zygote",
)
#: What needs apps, and brings the rest.
COMMAND = "jobqueue.management.commands.runworker"
#: The settings of most workers, and what the launcher that has loaded their apps gives them.
SETTINGS = "tests.worker.settings"
GIVEN = "JOBQUEUE_TEST_SETTINGS"
PLAIN = {"database": {}, "jobqueue": {}, "apps": [], "constants": {}}
_LONGEST_MESSAGE = 1 << 20


class Launched:
    """A process that the launcher forked, with the methods of ``subprocess.Popen``."""

    def __init__(self, ask: Callable[[dict[str, Any]], Any], pid: int) -> None:
        self._ask = ask
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit status, or ``None`` if it has not ended."""
        if self.returncode is None:
            self.returncode = self._ask({"pid": self.pid})
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it ends; return the exit status."""
        if self.poll() is None:
            end = os.pidfd_open(self.pid)
            try:
                poll = select.poll()
                poll.register(end, select.POLLIN)
                poll.poll(None if timeout is None else timeout * 1000)
            finally:
                os.close(end)
        if (status := self.poll()) is None:
            raise subprocess.TimeoutExpired("runworker", timeout or 0)
        return status

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)


class Launcher:
    """The test's end of the channel to the process that forks; this ends when the channel is closed."""

    def __init__(self, *, has_apps: bool) -> None:
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._one_at_a_time = threading.Lock()
        own = {"DJANGO_SETTINGS_MODULE": SETTINGS, GIVEN: json.dumps(PLAIN)} if has_apps else {}
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno()), *(["apps"] if has_apps else [])],
                cwd=ROOT,
                env=os.environ | own | {MARK: "0" * LENGTH, "PYTHONUNBUFFERED": "1"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )

    def start(self, words: Sequence[str], environment: Mapping[str, str], output: BinaryIO) -> Launched:
        """Start ``python -m`` with these words; it writes to a file."""
        pid = self._ask({"words": list(words), "environment": dict(environment)}, output.fileno())
        return Launched(self._ask, pid)

    def _ask(self, question: dict[str, Any], *descriptors: int) -> Any:
        with self._one_at_a_time:
            socket.send_fds(self._channel, [json.dumps(question).encode()], descriptors)
            answer = self._channel.recv(_LONGEST_MESSAGE)
        assert answer, "the launcher of workers has ended"
        return json.loads(answer)


@cache
def launcher(*, has_apps: bool) -> Launcher:
    """Return a launcher of this process, which starts with its first worker."""
    return Launcher(has_apps=has_apps)


def serve(channel: socket.socket) -> dict[str, Any] | None:
    """Answer what the test asks, until it closes the channel; in a forked process, return what this is to do."""
    while True:
        asked, descriptors, *_ = socket.recv_fds(channel, _LONGEST_MESSAGE, 1)
        if not asked:
            return None
        question = json.loads(asked)
        if pid := question.get("pid"):
            found, status = os.waitpid(pid, os.WNOHANG)
            channel.send(json.dumps(os.waitstatus_to_exitcode(status) if found else None).encode())
        elif os.fork() == 0:
            _settle_in(question["environment"], *descriptors)
            channel.send(json.dumps(os.getpid()).encode())
            return question
        for descriptor in descriptors:
            os.close(descriptor)


def _settle_in(environment: Mapping[str, str], output: int) -> None:
    """Take on the session, the environment and the output of a process of its own."""
    os.setsid()
    for descriptor in (1, 2):
        os.dup2(output, descriptor)
    os.close(output)
    os.environ.clear()
    os.environ.update(environment)
    with open("/proc/self/stat") as file:  # noqa: PTH123
        beginning, end = map(int, file.read().rpartition(")")[2].split()[47:49])
    with open("/proc/self/mem", "r+b", buffering=0) as memory:  # noqa: PTH123
        memory.seek(beginning)
        place = memory.read(end - beginning).index(f"{MARK}=".encode()) + len(MARK) + 1
        memory.seek(beginning + place)
        memory.write(environment[MARK].encode())  # ``/proc`` shows what a process began with, nothing later


def _load_apps() -> None:
    """Set up Django, open no connection, and forget the settings."""
    django.setup()
    import_module(COMMAND)
    del sys.modules[SETTINGS]
    settings._wrapped = empty
    conf.get.cache_clear()
    for one in connections.all(initialized_only=True):
        assert one.connection is None, "an app has opened a connection that no worker should have"
        del connections[one.alias]
    vars(connections).pop("settings", None)
    connections._settings = None


def main() -> None:
    """Load, then fork one worker after another; be each of them."""
    for name in MODULES:
        import_module(name)
    has_apps = sys.argv[2:] == ["apps"]
    if has_apps:
        _load_apps()
    gc.collect()
    gc.freeze()  # a worker looks for garbage before it forks: there is none here
    with socket.socket(fileno=int(sys.argv[1])) as channel:
        channel.set_inheritable(False)
        task = serve(channel)
    if task:
        if has_apps:
            change(json.loads(os.environ[GIVEN])["constants"])
        sys.argv[:] = ["-m", *task["words"][1:]]
        sys.orig_argv[:] = [sys.executable, "-m", *task["words"]]
        runpy.run_module(task["words"][0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
