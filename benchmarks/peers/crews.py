"""The worker processes of a contestant, started, watched and ended together with their children."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from benchmarks.children import ROOT
from benchmarks.workers import Worker
from jobqueue.clock import SYSTEM

_GRACE = 2.0


def last_line(log: Path) -> str:
    """Quote the end of what was logged."""
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"


class Ended(Exception):
    """A worker ended by itself; the message is the end of its log."""


class Crew:
    """So many worker processes, each with a process group of its own."""

    def __init__(self, processes: list[subprocess.Popen[bytes]], log: Path) -> None:
        self._processes = processes
        self._log = log

    def check(self) -> None:
        """Raise if one of them has ended."""
        for process in self._processes:
            if process.poll() is not None:
                raise Ended(f"a worker ended with {process.returncode}: {last_line(self._log)}")

    def memory(self) -> float:
        """Sum what they and their children take, in MB."""
        return sum(Worker(process).memory() for process in self._processes)

    def cpu(self) -> float:
        """Sum the seconds of CPU time that they and their children have used."""
        return sum(Worker(process).cpu() for process in self._processes)

    def end(self) -> None:
        """Tell them to stop, and kill what does not."""
        self._signal(signal.SIGTERM)
        end = SYSTEM.monotonic() + _GRACE
        while SYSTEM.monotonic() < end and any(process.poll() is None for process in self._processes):
            time.sleep(0.005)
        self._signal(signal.SIGKILL)
        for process in self._processes:
            process.wait()

    def _signal(self, number: signal.Signals) -> None:
        for process in self._processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, number)


@contextmanager
def crew(command: Sequence[str], count: int, log: Path, **environ: str) -> Iterator[Crew]:
    """Start workers, and end them whatever happens."""
    processes: list[subprocess.Popen[bytes]] = []
    workers = Crew(processes, log)
    try:
        with log.open("ab") as written:
            for _ in range(count):
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=written,
                    stderr=written,
                    cwd=ROOT,
                    env=os.environ | environ,
                    start_new_session=True,
                )
                processes.append(process)
        yield workers
    finally:
        workers.end()
