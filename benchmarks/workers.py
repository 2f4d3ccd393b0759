"""A worker process under measurement: started, watched through /proc, and ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.apps import apps
from django.db.models import Manager

from benchmarks.site import Site
from jobqueue.clock import SYSTEM

PATIENCE = 60.0
_TICKS = os.sysconf("SC_CLK_TCK")


class Worker:
    """A ``runworker`` and the processes below it."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def wait(self) -> None:
        """Wait until it ends by itself; raise if it did not end well."""
        if self._process.wait(600):
            raise RuntimeError(f"the worker ended with {self._process.returncode}")

    def family(self) -> list[int]:
        """List the process ids: supervisor, zygote, executors."""
        found = [self._process.pid]
        for pid in found:
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
            found += map(int, children.split())
        return found

    def memory(self) -> float:
        """Sum what the processes take, shared memory by its share, in MB."""
        rollups = [Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii") for pid in self.family()]
        lines = [line for rollup in rollups for line in rollup.splitlines() if line.startswith("Pss:")]
        return sum(int(line.split()[1]) for line in lines) / 1024

    def cpu(self) -> float:
        """Sum the seconds of CPU time that the processes have used."""
        stats = [Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2] for pid in self.family()]
        return sum(sum(map(int, stat.split()[11:13])) for stat in stats) / _TICKS


@contextmanager
def worker(site: Site, **options: Any) -> Iterator[Worker]:
    """Start a worker, and end it with everything that is left of it."""
    asked = json.dumps({"place": asdict(site.place), "options": options})
    command = [sys.executable, "-m", "benchmarks.worker_process", asked]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as process:
        try:
            yield Worker(process)
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                process.send_signal(signal.SIGTERM)


def rows(model: str) -> Manager[Any]:
    """Find the rows of a model; which of them there are is known only once Django is set up."""
    manager: Manager[Any] = apps.get_model("jobqueue", model)._default_manager
    return manager


def until(is_so: Callable[[], bool], what: str, pause: float = 0.02) -> None:
    """Wait until something is so; raise if it does not come to be."""
    end = SYSTEM.monotonic() + PATIENCE
    while not is_so():
        if SYSTEM.monotonic() > end:
            raise RuntimeError(f"in {PATIENCE:g} seconds it did not come to be that {what}")
        time.sleep(pause)
