"""Workers in real processes: how tests start, observe and end them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from django.db import connections

from jobqueue.clock import SYSTEM
from tests.app.ledger import PLACE
from tests.worker.launcher import GIVEN, MARK, SETTINGS, Launched, launcher

ROOT = Path(__file__).resolve().parents[2]
RUNWORKER = ("django", "runworker")
#: The constants of a worker that trusts no file system's locks: its death is never proved, and leases tell of it.
UNPROVED = {"jobqueue.worker.worker_lock.LOCAL": {}}
#: Long, for the machine may be busy; nobody waits for it unless something is wrong.
DEADLINE = 30.0


def until(
    condition: Callable[[], Any], seconds: float = DEADLINE, what: str | Callable[[], str] = "", pause: float = 0.01
) -> Any:
    """Wait for a condition, and return what it says; fail after some time, with ``what`` was missed.

    A condition that computes for long takes a longer pause between two looks.
    """
    end = SYSTEM.monotonic() + seconds
    while not (found := condition()):
        if SYSTEM.monotonic() >= end:
            missed = what() if callable(what) else what
            raise AssertionError(f"waited {seconds:g} s in vain for {missed or 'the condition'}")
        time.sleep(pause)
    return found


def database_of(alias: str, **changes: Any) -> dict[str, Any]:
    """Make the database settings of another process that uses the test's database."""
    unwanted = ("TEST", "TIME_ZONE")
    own = {key: value for key, value in connections[alias].settings_dict.items() if key not in unwanted}
    return own | {"NAME": str(own["NAME"])} | changes


def is_gone(pid: int) -> bool:
    """Whether a process has ended, reaped or not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def is_stopped(pid: int) -> bool:
    """Whether SIGSTOP has taken hold of a process."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def is_resting(pid: int) -> bool:
    """Whether each thread of a process waits for something."""
    states = [path.read_text().rpartition(")")[2].split()[0] for path in Path(f"/proc/{pid}/task").glob("*/stat")]
    return set(states) == {"S"}


def until_at_rest(pid: int) -> None:
    """Wait until a process rests for several looks on end: between two statements it does for one at most."""
    seen = 0

    def has_rested() -> bool:
        nonlocal seen
        seen = seen + 1 if is_resting(pid) else 0
        return seen == 5

    until(has_rested, what="a process that has nothing to do")


def children(pid: int) -> list[int]:
    """List the living children of a process."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found += map(int, (task / "children").read_text().split())
    return [child for child in sorted(found) if not is_gone(child)]


def _changes_python(environment: dict[str, str]) -> bool:
    """Whether it holds what the interpreter reads as it starts."""
    return any(name.startswith("PYTHON") for name in environment)


class WorkerProcess:
    """One ``runworker``, in a session of its own; its output goes to a file.

    The launcher forks it. Where the interpreter itself matters, or another program, a new one starts.
    """

    def __init__(
        self,
        alias: str,
        ledger: Path,
        log: Path,
        *options: str,
        settings: str = SETTINGS,
        jobqueue: dict[str, Any] | None = None,
        apps: tuple[str, ...] = (),
        database: dict[str, Any] | None = None,
        environment: dict[str, str] | None = None,
        prefix: tuple[str, ...] = (),
        constants: dict[str, Any] | None = None,
        databases: dict[str, Any] | None = None,
        program: tuple[str, ...] = RUNWORKER,
    ) -> None:
        self.log = log
        self.mark = uuid.uuid4().hex
        given = {
            "database": database_of(alias, **(database or {})),
            "databases": databases or {},
            "jobqueue": jobqueue or {},
            "apps": list(apps),
            "constants": constants or {},
        }
        own = {
            "DJANGO_SETTINGS_MODULE": settings,
            GIVEN: json.dumps(given),
            PLACE: str(ledger),
            MARK: self.mark,
            "PYTHONUNBUFFERED": "1",
        }
        told = os.environ | own | (environment or {})
        has_apps = settings == SETTINGS and not apps and not environment
        is_own = prefix or program != RUNWORKER or "--reload" in options or _changes_python(environment or {})
        with log.open("wb") as output:
            if not is_own:
                self.process: Launched | subprocess.Popen[bytes] = launcher(has_apps=has_apps).start(
                    [*program, *options], told, output
                )
                return
            self.process = subprocess.Popen(
                [*prefix, sys.executable, "-m", *program, *options],
                cwd=ROOT,
                env=told,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The supervisor's."""
        return self.process.pid

    @property
    def output(self) -> str:
        """What it has written so far."""
        return self.log.read_text(errors="replace")

    @property
    def zygote(self) -> int:
        """The process that forks executors."""
        return until(lambda: children(self.pid), what="a zygote")[0]

    @property
    def executors(self) -> list[int]:
        """The processes that run handlers, oldest first."""
        return children(self.zygote)

    @property
    def family(self) -> list[int]:
        """Supervisor, zygote and executors."""
        return [self.pid, self.zygote, *self.executors]

    def until_up(self, processes: int = 1) -> WorkerProcess:
        """Wait until it has its executors."""

        def is_up() -> bool:
            assert self.process.poll() is None, self.output
            found = children(self.pid)
            return bool(found) and len(children(found[0])) >= processes

        until(is_up, what="a worker that is up")
        return self

    def until_said(self, text: str, seconds: float = DEADLINE) -> None:
        """Wait until its output holds a text."""
        until(lambda: text in self.output, seconds, lambda: f"{text!r} in the output:\n{self.output}")

    def wait(self, seconds: float = DEADLINE) -> int:
        """Wait until the supervisor ends; return its exit status."""
        return self.process.wait(seconds)

    def stop(self, seconds: float = DEADLINE) -> int:
        """Ask it to end, and return its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.wait(seconds)

    def relatives(self) -> Iterator[int]:
        """Find everything that this worker started and that still lives, whoever is its parent now."""
        needle = f"{MARK}={self.mark}".encode()
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                with contextlib.suppress(OSError):
                    if needle in (entry / "environ").read_bytes() and not is_gone(int(entry.name)):
                        yield int(entry.name)

    def destroy(self) -> None:
        """Kill what is left of it."""
        end = SYSTEM.monotonic() + DEADLINE
        while (left := list(self.relatives())) and SYSTEM.monotonic() < end:
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.process.poll()
            time.sleep(0.005)
        self.process.wait(DEADLINE)


def freeze(*pids: int) -> None:
    """Stop processes, and come back once they stand still."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    until(lambda: all(map(is_stopped, pids)), what="processes that stand still")


def thaw(*pids: int) -> None:
    """Let stopped processes go on."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):  # the first to go on may have ended the others
            os.kill(pid, signal.SIGCONT)
