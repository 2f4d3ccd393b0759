"""Processes that die in the very call that writes, syncs or sends."""

from __future__ import annotations

from benchmarks.faults.catalogue import fault
from benchmarks.faults.crew import is_gone
from benchmarks.faults.laboratory import Laboratory
from benchmarks.faults.needs import strace
from benchmarks.faults.soundness import look_for_damage
from benchmarks.faults.tracing import any_worker, die_at, end_worker_at

#: What commits: SQLite writes and syncs; on Postgres the statement is sent, and the server commits.
_CALLS = {"sqlite": ("pwrite64", "fdatasync"), "postgres": ("sendto",)}
#: Points that are gone through, before they come again.
_WORKER_POINTS = 200
_PRODUCER_POINTS = 40


def sync_each_commit(lab: Laboratory) -> None:
    """Configure SQLite to sync every commit and to checkpoint often, so that few jobs cause all kinds of writes."""
    if lab.database == "sqlite":
        pragmas = "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=40;"
        lab.place.database["OPTIONS"]["init_command"] = pragmas


@fault("T02a", "SIGKILL of a worker at its n-th write, sync or message", needs=(strace,))
def workers_die_at_commit_points(lab: Laboratory) -> None:
    """Kill a supervisor at its n-th write, sync or message, for each n: all moves are legal, the file is intact."""
    sync_each_commit(lab)
    look_for_damage(lab)
    lab.crew.start(2, processes=1, concurrency=4, lease=lab.lease)
    lab.load.start(2, rate=20)
    tried, calls = 0, _CALLS[lab.database]
    while lab.goes_on():
        nth, call = 1 + tried // len(calls) % _WORKER_POINTS, calls[tried % len(calls)]
        tried += 1
        if end_worker_at(lab, any_worker(lab), call, nth):
            lab.injected(note=False)
    lab.findings["points"] = f"{lab.injections} of {tried}"


@fault("T02b", "SIGKILL of a producer at its n-th write, sync or message", needs=(strace,))
def producers_die_at_commit_points(lab: Laboratory) -> None:
    """Kill a producer at its n-th write, sync or message, for each n: its job is stored completely or not at all."""
    sync_each_commit(lab)
    look_for_damage(lab)
    lab.crew.start(1, processes=1, concurrency=4, lease=lab.lease)
    lab.load.start(1, rate=5)  # it lives: the queue is in use all the while
    tried, calls = 0, _CALLS[lab.database]
    while lab.goes_on():
        nth, call = 1 + tried // len(calls) % _PRODUCER_POINTS, calls[tried % len(calls)]
        tried += 1
        spared = set(lab.load.pids)
        lab.load.start(1, rate=50)
        (pid,) = set(lab.load.pids) - spared
        if die_at(lab, pid, call, nth):
            lab.injected(f"SIGKILL at {call} number {nth}")
        lab.expect(is_gone(pid), f"producer {tried} comes to {call} number {nth}")
    lab.findings["points"] = f"{lab.injections} of {tried}"
