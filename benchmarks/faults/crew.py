"""The workers of a run. Starts, kills, freezes, stops and replacements are all recorded."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.children import ROOT
from benchmarks.databases import Place
from benchmarks.faults.ledger import PLACE, Ledger, What, boot
from benchmarks.workers import until

#: All processes of a crew have this variable with a unique value, so that no others are ever killed.
MARK = "JOBQUEUE_FAULTS_MARK"


def is_gone(pid: int) -> bool:
    """Return whether a process has ended, reaped or not."""
    return _state(pid) in "ZX"


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "X"


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (task / "children").read_text(encoding="ascii").split())
    return [child for child in sorted(found) if not is_gone(child)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How a worker is started: its database, a prefix for its command, additional apps, and options."""

    place: Place
    prefix: tuple[str, ...] = ()
    apps: tuple[str, ...] = ()
    options: dict[str, Any]

    def command(self) -> list[str]:
        """Return the command of such a worker."""
        asked = {"place": asdict(self.place), "options": self.options, "apps": self.apps}
        return [*self.prefix, sys.executable, "-m", "benchmarks.faults.worker_process", json.dumps(asked)]


class Worker:
    """A ``runworker`` in a session of its own, with its output in a file."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path, manner: Manner) -> None:
        self.process = process
        self.log = log
        self.manner = manner
        #: Whether the laboratory did something that may end this worker.
        self.doomed = False

    @property
    def pid(self) -> int:
        """Return the supervisor's process id."""
        return self.process.pid

    @property
    def output(self) -> str:
        """Return the output so far."""
        return self.log.read_text(errors="replace")

    @property
    def executors(self) -> list[int]:
        """Return the processes that run handlers."""
        return self.family()[2:]

    def family(self) -> list[int]:
        """Return its living processes: supervisor, zygote, executors."""
        if self.process.poll() is not None:
            return []
        found = [self.pid, *_children(self.pid)[:1]]
        return [*found, *_children(found[1])] if len(found) > 1 else found

    def is_up(self) -> bool:
        """Return whether it has all its executors. Raise if it has ended."""
        if self.process.poll() is not None:
            raise RuntimeError(f"A worker ended with {self.process.returncode} while it started:\n{self.output}")
        return len(self.executors) >= int(self.manner.options.get("processes", 1))

    def wait(self, seconds: float) -> int | None:
        """Wait until the supervisor ends. Return its exit status, or None if it doesn't."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None


class Crew:
    """All the workers of one run."""

    def __init__(self, place: Place, folder: Path, ledger: Ledger) -> None:
        self.workers: list[Worker] = []
        #: The output of workers that ended without a reason.
        self.deserted: list[str] = []
        self._place = place
        self._folder = folder
        self._ledger = ledger
        self._mark = uuid.uuid4().hex
        self._started = 0

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of the crew's processes."""
        return os.environ | {PLACE: str(self._ledger.path), MARK: self._mark, "PYTHONUNBUFFERED": "1"}

    def start(
        self,
        count: int = 1,
        *,
        place: Place | None = None,
        prefix: tuple[str, ...] = (),
        apps: tuple[str, ...] = (),
        wait: bool = True,
        **options: Any,
    ) -> list[Worker]:
        """Start workers, and return when they are up."""
        manner = Manner(place=place or self._place, prefix=prefix, apps=apps, options=options)
        new = [self._start(manner) for _ in range(count)]
        for worker in new if wait else ():
            until(worker.is_up, "a worker is up")
        return new

    def _start(self, manner: Manner) -> Worker:
        self._started += 1
        log = self._folder / f"worker-{self._started}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                manner.command(),
                cwd=ROOT,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.workers.append(Worker(process, log, manner))
        return self.workers[-1]

    def kill(self, worker: Worker, pid: int, number: signal.Signals = signal.SIGKILL) -> None:
        """Kill one process of a worker. The death of its supervisor or zygote ends the whole worker."""
        family = worker.family()
        worker.doomed = worker.doomed or pid in family[:2]
        hit = family if pid in family[:2] else [pid]
        self._record(What.INJECTED, hit, f"{number.name} to {self._role(family, pid)}")
        _signal(number, [pid])

    def freeze(self, worker: Worker, *pids: int) -> None:
        """Stop the given processes of a worker, by default all, and return once they are frozen."""
        chosen = list(pids) or worker.family()
        self._record(What.FROZEN, chosen, "SIGSTOP")
        _signal(signal.SIGSTOP, chosen)
        until(lambda: all(_state(pid) in "TtZX" for pid in chosen), "processes stand still", pause=0.002)

    def thaw(self, worker: Worker, *pids: int) -> None:
        """Resume stopped processes."""
        chosen = list(pids) or worker.family()
        self._record(What.THAWED, chosen, "SIGCONT")
        _signal(signal.SIGCONT, chosen)

    def thaw_all(self) -> None:
        """Resume all stopped processes."""
        for worker in self.workers:
            if still := [pid for pid in worker.family() if _state(pid) in "Tt"]:
                self.thaw(worker, *still)

    def tend(self) -> int:
        """Replace ended workers without waiting for the new ones. Return their number."""
        ended = [worker for worker in self.workers if worker.process.poll() is not None]
        for worker in ended:
            self._let_go(worker)
            self._start(worker.manner)
        return len(ended)

    def stop(self) -> None:
        """Ask all workers to stop, and wait until they have."""
        for worker in [one for one in self.workers if one.process.poll() is not None]:
            self._let_go(worker)
        self.retire(*self.workers)

    def retire(self, *workers: Worker, seconds: float = 60.0) -> None:
        """Ask some workers to stop, and wait until they have."""
        for worker in workers:  # a signal that comes before it has its handlers ends it, as any process
            until(worker.is_up, "a worker that shall end is up")
            worker.process.send_signal(signal.SIGTERM)
        for worker in workers:
            if worker.wait(seconds) != 0:
                status = worker.process.returncode
                self.deserted.append(f"asked to end, a worker did so with {status}:\n{_tail(worker)}")
            self.workers.remove(worker)

    def dismiss(self, worker: Worker) -> None:
        """Remove a worker that was ended on purpose."""
        worker.doomed = True
        self._let_go(worker)

    def _let_go(self, worker: Worker) -> None:
        self.workers.remove(worker)
        if not worker.doomed:
            self.deserted.append(f"a worker ended with {worker.process.returncode}, unasked:\n{_tail(worker)}")

    def destroy(self) -> None:
        """Kill the rest of the crew, frozen or not."""
        for _ in range(1_000):
            left = list(self._relatives())
            if not left:
                break
            _signal(signal.SIGKILL, left)
            for worker in self.workers:
                worker.process.poll()
            time.sleep(0.01)

    def _relatives(self) -> Iterator[int]:
        """Return all living processes of the crew, whatever their parents are now."""
        needle = f"{MARK}={self._mark}".encode()
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                with suppress(OSError):
                    if needle in (entry / "environ").read_bytes() and not is_gone(int(entry.name)):
                        yield int(entry.name)

    def _record(self, what: What, pids: list[int], how: str) -> None:
        boots = []
        for pid in pids:
            with suppress(OSError):
                boots.append(boot(pid))
        self._ledger.note(what, boots=boots, how=how)

    @staticmethod
    def _role(family: list[int], pid: int) -> str:
        return ("supervisor", "zygote", "executor")[min(2, family.index(pid))] if pid in family else "nobody"


def _signal(number: signal.Signals, pids: list[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _tail(worker: Worker) -> str:
    return "\n".join(worker.output.splitlines()[-8:])
