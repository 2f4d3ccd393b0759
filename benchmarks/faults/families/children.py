"""Handlers that start processes, and what happens to connections, files and orphans."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from functools import partial
from pathlib import Path

from django.apps import apps

from benchmarks.faults import place, unusual_jobs
from benchmarks.faults.catalogue import fault
from benchmarks.faults.checker import Account
from benchmarks.faults.crew import Worker
from benchmarks.faults.laboratory import Laboratory
from benchmarks.faults.ledger import What
from benchmarks.faults.needs import process_namespaces
from benchmarks.faults.soundness import look_for_damage
from benchmarks.faults.with_jobs import with_jobs
from benchmarks.workers import until
from jobqueue.clock import SYSTEM

_UNUSUAL = with_jobs(unusual_jobs.__name__)
_CONTAINER = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
#: A supervisor buries orphans every other second.
_BURIED_WITHIN = 15


@fault("T12", "handlers that fork, and start programs")
def handlers_fork(lab: Laboratory) -> None:
    """Jobs fork children that compute or query: parents keep their sessions, and the database file is intact."""
    look_for_damage(lab)
    lab.crew.start(2, prefix=_UNUSUAL, processes=2, concurrency=4, lease=lab.lease)
    lab.load.start(1, rate=10)
    accepted: list[str] = []
    while lab.goes_on():
        accepted += lab.enqueue("forks", 10)
        until(partial(lab.started, *accepted), "all have begun", patience=120)
        lab.injections = len(accepted)

    def look(_: Account) -> None:
        errors = [one.facts["error"] for one in lab.told(What.BROKEN)]
        lab.expect(not errors, f"no handler loses its session, {len(errors)} did: {errors[:3]}")
        effects = place.effects()
        off = [job for job in accepted if effects.get(job) != 1]
        lab.expect(not off, f"each job has written once, not so {len(off)}: {off[:3]}")
        hung = apps.get_model("jobqueue", "Attempt")._default_manager.filter(ending="timed_out")
        lab.findings["children that hung"] = hung.count()

    lab.afterwards(look)


@fault("T29", "a worker that is the first process of its container", needs=(process_namespaces,))
def first_process(lab: Laboratory) -> None:
    """Workers as process 1 inherit orphans and are stopped from outside: orphans are reaped, and runs can end."""
    most, seconds = 0, []
    while lab.goes_on():
        (worker,) = lab.crew.start(1, prefix=(*_CONTAINER, *_UNUSUAL), processes=1, concurrency=4, lease=lab.lease)
        lab.expect(_number_within(worker.family()[1]) == 1, "the supervisor is process 1")
        most = max(most, _leave_orphans(lab, worker))
        running = lab.enqueue("long", 2)
        until(lambda: lab.started(*running), "jobs run when the worker is asked to end")  # noqa: B023
        seconds.append(_end_from_outside(lab, worker))
    lab.findings["orphans at once"] = most
    lab.findings["ends within, s"] = round(max(seconds), 2)
    lab.crew.start(1, prefix=_UNUSUAL, processes=1, lease=lab.lease)

    def look(account: Account) -> None:
        lab.expect(not account.recoveries, f"no run is cut short, {len(account.recoveries)} were")

    lab.afterwards(look)


def _leave_orphans(lab: Laboratory, worker: Worker) -> int:
    """Run jobs that leave orphans, until all of them are reaped. Return how many were dead at once."""
    supervisor, most = worker.family()[1], 0
    lab.injections += len(jobs := lab.enqueue("leaves_orphans", 6))
    until(lambda: lab.started(*jobs), "jobs leave orphans")
    for _ in range(50):
        most = max(most, len(_defunct(supervisor)))
        lab.pause(0.02)
    until(lambda: not _defunct(supervisor), "orphans are buried", patience=_BURIED_WITHIN)
    return most


def _end_from_outside(lab: Laboratory, worker: Worker) -> float:
    began = SYSTEM.monotonic()
    os.kill(worker.family()[1], signal.SIGTERM)
    status = worker.wait(60)
    lab.expect(status == 0, f"a first process that is asked to end does so with 0, not with {status}: {worker.output}")
    lab.crew.dismiss(worker)
    return SYSTEM.monotonic() - began


def _defunct(pid: int) -> list[int]:
    """Return the children of a process that are dead but not reaped."""
    found = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                with suppress(OSError):
                    if Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                        found.append(child)
    return found


def _number_within(pid: int) -> int:
    """Return the number of a process in its own namespace."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("NSpid:")).split()[-1])
