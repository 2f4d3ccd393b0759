"""Workers that are stopped in various ways while they have unfinished jobs."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from itertools import cycle

from benchmarks.faults.catalogue import fault
from benchmarks.faults.checker import Account
from benchmarks.faults.crew import Worker, is_gone
from benchmarks.faults.laboratory import Laboratory
from benchmarks.faults.place import left, rows
from benchmarks.workers import until
from jobqueue.clock import SYSTEM

STOP_GRACE = 0.5
#: What a busy machine may add: to the signals, to the last writes, and to the ends of processes.
LENIENCE = 3.0


def _term(worker: Worker) -> None:
    os.kill(worker.pid, signal.SIGTERM)


def _int(worker: Worker) -> None:
    os.kill(worker.pid, signal.SIGINT)


def _group(worker: Worker) -> None:
    os.killpg(worker.pid, signal.SIGTERM)


def _twice(worker: Worker) -> None:
    _term(worker)
    time.sleep(0.2)
    if worker.process.poll() is None:
        _term(worker)


MANNERS: dict[str, Callable[[Worker], None]] = {"SIGTERM": _term, "SIGINT": _int, "group": _group, "twice": _twice}


@fault("T04", "workers that are asked to end: once, twice, as a group, and with jobs that do not")
def ask_to_end(lab: Laboratory) -> None:
    """Stop workers with short, long and unresponsive jobs: they end in time, and no attempt is counted."""
    beyond: list[float] = []
    for name, ask in cycle(MANNERS.items()):
        if not lab.goes_on() and lab.injections >= len(MANNERS):
            break
        grace = lab.rng.choice((0.0, 0.5) if lab.quick else (0.0, 0.5, 3.0))
        lasted = _end_one(lab, grace, ask)
        within = 0.2 if name == "twice" else grace
        lab.expect(
            lasted <= within + STOP_GRACE + LENIENCE, f"{name} with {grace:g} s of grace took it {lasted:.1f} s to end"
        )
        beyond.append(max(0.0, lasted - within))
        lab.injected(name)
    lab.findings["seconds_beyond_grace_at_most"] = round(max(beyond), 2)
    lab.crew.start(1, concurrency=20, lease=lab.lease)

    def look(_: Account) -> None:
        spent = [row.id for row in rows() if row.attempts != 1]
        lab.expect(not spent, f"what is given back has its attempt back, not so {len(spent)}: {spent[:3]}")

    lab.afterwards(look)


def _end_one(lab: Laboratory, grace: float, ask: Callable[[Worker], None]) -> float:
    """Let a worker work, stop it, and return the seconds that it took."""
    (worker,) = lab.crew.start(
        1, processes=2, concurrency=5, lease=lab.lease, shutdown_grace=grace, stop_grace=STOP_GRACE
    )
    if left() < 20:
        for kind, count in {"short": 10, "long": 2, "patient": 2, "deaf": 2}.items():
            lab.enqueue(kind, count)
    (job,) = lab.enqueue("short")
    until(lambda: lab.started(job), "it works")
    lab.pause(0, 0.5)
    family, began = worker.family(), SYSTEM.monotonic()
    ask(worker)
    status = worker.wait(grace + 30)
    lasted = SYSTEM.monotonic() - began
    lab.expect(status == 0, f"a worker that is asked to end does so with 0, not {status}:\n{worker.output[-500:]}")
    until(lambda: all(map(is_gone, family)), "its processes end with it", patience=LENIENCE)
    lab.crew.dismiss(worker)
    return lasted
