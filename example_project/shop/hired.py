"""The demo's worker, a real process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from types import TracebackType
from typing import IO, Self

from example_project.shop.place import BASE

OPTIONS = ("--drain", "--concurrency", "10")
#: The seconds in which the worker must end once it was asked to.
GRACE = 10.0


class HiredWorker:
    """``manage.py runworker``. Leaving the block stops it in any case."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._heard: SimpleQueue[str] = SimpleQueue()
        told = [sys.executable, str(BASE / "manage.py"), "runworker", *OPTIONS, "--name", "demo"]
        # In a process group of its own, so that Ctrl-C reaches it only once, through the demo.
        self._process = subprocess.Popen(  # noqa: S603 - our own command
            told,
            env={name: value for name, value in os.environ.items() if not name.startswith("JOBQUEUE_WORKER_")},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            process_group=0,
        )
        self._reader = Thread(target=self._read, args=(self._process.stdout,), daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
            if self._process.poll() is not None:
                break
            self._process.send_signal(number)
            with suppress(KeyboardInterrupt):  # a second Ctrl-C skips the wait
                self.wait(GRACE)
        self._reader.join(GRACE)

    @property
    def pid(self) -> int:
        """Return the process id of its supervisor."""
        return self._process.pid

    def wait(self, seconds: float) -> int | None:
        """Wait for its end, at most this long, and return its exit status."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def news(self) -> list[str]:
        """Return its output since the last call."""
        fresh = []
        while True:
            try:
                fresh.append(self._heard.get_nowait())
            except Empty:
                self.lines += fresh
                return fresh

    def _read(self, stream: IO[str] | None) -> None:
        for line in stream or ():
            self._heard.put(line.rstrip("\n"))
