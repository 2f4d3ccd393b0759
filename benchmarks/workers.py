"""A worker process under measurement: started, observed through /proc, and stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any

from django.apps import apps
from django.db.models import Manager

from benchmarks.databases import Place
from benchmarks.site import Site
from jobqueue.clock import SYSTEM

PATIENCE = 60.0
_TICKS = os.sysconf("SC_CLK_TCK")


class Worker:
    """A ``runworker`` and its child processes."""

    def __init__(self, process: subprocess.Popen[bytes], executors: int = 1) -> None:
        self._process = process
        self._executors = executors

    def wait_until_up(self) -> None:
        """Wait until it is registered and has all its executors."""
        until(lambda: rows("Worker").exists() and len(self.executors()) == self._executors, "the worker is up")

    def family(self) -> list[int]:
        """Return the process ids: supervisor, zygote, executors."""
        found = [self._process.pid]
        for pid in found:
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
            found += map(int, children.split())
        return found

    def executors(self) -> list[int]:
        """Return the process ids of the executors."""
        return self.family()[2:]

    def memory(self) -> float:
        """Return the memory of all processes in MB, with shared memory in proportion."""
        rollups = [Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii") for pid in self.family()]
        lines = [line for rollup in rollups for line in rollup.splitlines() if line.startswith("Pss:")]
        return sum(int(line.split()[1]) for line in lines) / 1024

    def cpu(self) -> float:
        """Return the seconds of CPU time of all processes."""
        return sum(map(_cpu, self.family()))

    def cpu_apart(self) -> tuple[float, float]:
        """Return the seconds of CPU time of the supervisor and of the executors."""
        return _cpu(self._process.pid), sum(map(_cpu, self.executors()))


def _cpu(pid: int) -> float:
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2]
    return sum(map(int, stat.split()[11:13])) / _TICKS


@contextmanager
def worker(site: Site, **options: Any) -> Iterator[Worker]:
    """Start a worker at a site's place, and end it with all its processes."""
    with worker_at(site.place, **options) as running:
        yield running


@contextmanager
def worker_at(place: Place, constants: Mapping[str, float] = MappingProxyType({}), **options: Any) -> Iterator[Worker]:
    """Start a worker with the settings of a place. With a ``verbosity`` it logs, but nothing reads the log.

    ``constants`` are set in its modules first, by their dotted names.
    """
    asked = json.dumps({"place": asdict(place), "constants": dict(constants), "options": options})
    command = [sys.executable, "-m", "benchmarks.worker_process", asked]
    errors = subprocess.DEVNULL if options.get("verbosity") else None
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors) as process:
        try:
            yield Worker(process, options.get("processes", 1))
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                process.send_signal(signal.SIGTERM)


def end_in_order() -> None:
    """Turn SIGTERM into an exception, so that the workers that this process started end with it."""
    signal.signal(signal.SIGTERM, _end)


def _end(*_: object) -> None:
    raise SystemExit(143)


def rows(model: str) -> Manager[Any]:
    """Return the manager of a model, which is only available once Django is set up."""
    manager: Manager[Any] = apps.get_model("jobqueue", model)._default_manager
    return manager


def until(is_so: Callable[[], bool], what: str, pause: float = 0.02, patience: float = PATIENCE) -> None:
    """Wait until a condition holds. Raise if it doesn't in time."""
    end = SYSTEM.monotonic() + patience
    while not is_so():
        if SYSTEM.monotonic() > end:
            raise RuntimeError(f"in {patience:g} seconds it did not come to be that {what}")
        time.sleep(pause)
