"""A real worker in a process of its own, started and ended by the demo."""

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
#: What the worker gets to end in, once it was asked to.
GRACE = 10.0


class HiredWorker:
    """``manage.py runworker``; leaving the block ends it, whatever happened inside."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._heard: SimpleQueue[str] = SimpleQueue()
        told = [sys.executable, str(BASE / "manage.py"), "runworker", *OPTIONS, "--name", "demo"]
        # In a group of its own, so that Ctrl-C reaches it once: from the demo.
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
            with suppress(KeyboardInterrupt):  # whoever is impatient gets the next step at once
                self.wait(GRACE)
        self._reader.join(GRACE)

    @property
    def pid(self) -> int:
        """The number of its supervisor's process."""
        return self._process.pid

    def wait(self, seconds: float) -> int | None:
        """Wait so long at most; return its exit status once it has ended."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def news(self) -> list[str]:
        """Return what it has said since the last time."""
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
