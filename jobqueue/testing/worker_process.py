"""A real worker, for the few tests that need one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

from django.conf import ENVIRONMENT_VARIABLE
from django.db import connections

from jobqueue import backends, conf
from jobqueue.backends.sql.backend import SqlBackend
from jobqueue.backends.sqlite.memory import is_in_memory
from jobqueue.clock import SYSTEM
from jobqueue.errors import JobQueueError

#: The settings of the worker, and the environment variable that they read.
_SETTINGS = "jobqueue.worker.settings_in_test"
_GIVEN = "JOBQUEUE_TESTING_SETTINGS"
#: How long a worker may take to start, and to stop, on a busy machine.
_PATIENCE = 30.0
_LOOK_EVERY = 0.01


class WorkerProcess:
    """A worker in processes of its own, which runs what the test commits.

    Entering it waits until the worker takes jobs. At its end the worker is stopped.
    """

    def __init__(self, log: Path, *options: str) -> None:
        self._log = log
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        environment = os.environ | _environment()
        command = ["jobqueue", "worker", "--stop-at-eof", "--skip-checks", "-v", "2", *self._options]
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(  # noqa: S603 - the words of its command are ours
                [sys.executable, "-m", "django", *command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
        try:
            self._wait_until_ready()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The supervisor's process."""
        if self._process is None:
            raise JobQueueError("The worker has not been started: use it in a with statement.")
        return self._process

    @property
    def output(self) -> str:
        """What the worker has written to its log so far."""
        return self._log.read_text(errors="replace")

    def stop(self) -> None:
        """Stop the worker as SIGTERM does, and wait for it."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            self.process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"The worker did not stop within {_PATIENCE:g} s:\n{self.output}") from None

    def kill(self) -> None:
        """Kill all processes of the worker."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(_PATIENCE)

    def _wait_until_ready(self) -> None:
        backend, end = backends.current(), SYSTEM.monotonic() + _PATIENCE
        while self.process.pid not in {one.pid for one in backend.workers.all()}:
            if self.process.poll() is not None or SYSTEM.monotonic() > end:
                raise AssertionError(f"The worker did not start:\n{self.output}")
            time.sleep(_LOOK_EVERY)


def _environment() -> dict[str, str]:
    """Return the environment that leads a worker to the databases of this test."""
    if not isinstance(backends.current(), SqlBackend):
        raise JobQueueError("A worker in another process cannot see a queue in the memory of this one: use drain().")
    alias = conf.get("DATABASE")
    if is_in_memory(alias):
        raise JobQueueError(
            f"A worker in another process cannot see the database {alias!r}, which is in the memory of this one. Use "
            "drain(), or give the test database a file: DATABASES[...]['TEST'] = {'NAME': 'test.sqlite3'}."
        )
    if connections[alias].in_atomic_block:
        raise JobQueueError(
            "A worker in another process sees only what is committed. Use drain(), or let the test commit: use "
            "TransactionTestCase, or django_db(transaction=True)."
        )
    module = os.environ.get(ENVIRONMENT_VARIABLE)
    if module is None:
        raise JobQueueError(f"A worker in another process needs {ENVIRONMENT_VARIABLE}, which is not set.")
    given = {
        "module": module,
        "databases": {one.alias: str(one.settings_dict["NAME"]) for one in connections.all()},
        "jobqueue": conf.given(),
    }
    return {
        ENVIRONMENT_VARIABLE: _SETTINGS,
        _GIVEN: json.dumps(given, default=str),
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
