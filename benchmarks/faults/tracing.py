"""System calls that fail or kill, by attaching strace to running processes."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from benchmarks.faults.crew import Worker, is_gone
from benchmarks.faults.laboratory import Laboratory
from benchmarks.faults.ledger import What, boot
from benchmarks.workers import until

_numbers = count(1)


class Tampering:
    """The log of the calls that strace manipulated."""

    def __init__(self, report: Path) -> None:
        self._report = report

    @property
    def times(self) -> int:
        """Return how many calls have failed so far."""
        return self._report.read_text(errors="replace").count("(INJECTED)")


@contextmanager
def tampered(
    lab: Laboratory, pids: Iterable[int], call: str, effect: str, *, path: Path | None = None
) -> Iterator[Tampering]:
    """Let calls of running processes fail (``error=EIO``) or kill (``signal=SIGKILL:when=3``) until the block ends."""
    report = lab.folder / f"strace-{next(_numbers)}"
    command = ["strace", "-f", "-qq", "-o", str(report), "-e", f"trace={call}", "-e", f"inject={call}:{effect}"]
    command += ["-P", str(path)] if path else []
    chosen = [pid for pid in pids if not is_gone(pid)]
    for pid in chosen:
        command += ["-p", str(pid)]
    with subprocess.Popen(
        command, env=lab.crew.environment, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as tracer:
        try:
            until(lambda: all(map(_is_traced, chosen)) or tracer.poll() is not None, "strace is attached", pause=0.005)
            yield Tampering(report)
        finally:
            tracer.terminate()


def die_at(lab: Laboratory, pid: int, call: str, nth: int, *, path: Path | None = None, seconds: float = 5.0) -> bool:
    """Kill a process at its n-th call of a kind. Return whether that happened."""
    with suppress(RuntimeError), tampered(lab, [pid], call, f"signal=SIGKILL:when={nth}", path=path):
        until(lambda: is_gone(pid), "the process is dead", pause=0.005, patience=seconds)
    return is_gone(pid)


def end_worker_at(lab: Laboratory, worker: Worker, call: str, nth: int, *, path: Path | None = None) -> bool:
    """Kill a worker's supervisor at its n-th call of a kind, on the record. Return whether that happened."""
    boots = []
    for pid in worker.family():
        with suppress(OSError):
            boots.append(boot(pid))
    worker.doomed = True
    died = die_at(lab, worker.pid, call, nth, path=path)
    if died:
        lab.ledger.note(What.INJECTED, boots=boots, how=f"SIGKILL at {call} number {nth}")
        worker.wait(5)
    else:
        worker.doomed = worker.process.poll() is not None
    return died


def _is_traced(pid: int) -> bool:
    """Return whether each thread of a process is traced, or the process is gone."""
    if is_gone(pid):
        return True
    with suppress(OSError):
        states = [(task / "status").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
        return all("TracerPid:\t0\n" not in state for state in states)
    return is_gone(pid)


def any_worker(lab: Laboratory) -> Worker:
    """Replace the workers that ended, and return one that is up."""
    lab.crew.tend()

    def found() -> list[Worker]:
        return [one for one in lab.crew.workers if one.process.poll() is None and one.is_up()]

    until(lambda: bool(found()), "a worker is up")
    return lab.rng.choice(found())
