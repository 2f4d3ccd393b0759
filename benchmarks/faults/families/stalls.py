"""Processes that freeze for longer than their leases, and wake up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.faults.catalogue import fault
from benchmarks.faults.checker import Account
from benchmarks.faults.crew import Worker
from benchmarks.faults.jobs import LATE_VERBS
from benchmarks.faults.laboratory import Laboratory
from benchmarks.faults.ledger import What
from benchmarks.faults.place import end_leases, left, reported, rows
from benchmarks.workers import until

MIX = {"short": 50, "long": 35, "patient": 15}


@fault("T09", "SIGSTOP of whole workers, of supervisors and of executors, for up to three leases")
def stand_still(lab: Laboratory) -> None:
    """Stop processes until others take over their jobs, and wake them: nothing that they then write is accepted."""
    options: dict[str, Any] = {
        "processes": 2,
        "concurrency": 4,
        "lease": lab.lease,
        "shutdown_grace": 2.0,
        "stop_grace": 1.0,
    }
    lab.crew.start(1 if lab.quick else 3, **options)
    lab.load.start(1, rate=12, mix=MIX)
    lab.pause(1)
    while lab.goes_on():
        worker = lab.rng.choice(lab.crew.workers)
        asleep = _some(lab, worker)
        lab.crew.freeze(worker, *asleep)
        nap = lab.lease * (1.2 if lab.quick else lab.rng.uniform(0, 3))
        lab.pause(nap)
        if nap > lab.lease:
            # One that starts sweeps at once. It is not waited for: who stands still may hold SQLite's write lock.
            lab.crew.start(1, wait=False, **options)
            lab.pause(2.5)
        lab.crew.thaw(worker, *asleep)
        lab.injected(note=False)
        lab.pause(0.5, 1.5)
        if len(lab.crew.workers) > 3:
            lab.crew.retire(worker)


def _some(lab: Laboratory, worker: Worker) -> list[int]:
    """Choose the whole worker first, then its supervisor or one executor."""
    family = worker.family()
    whole, supervisor, executor = family, family[:1], [lab.rng.choice(family[2:] or family)]
    return lab.rng.choice((whole, whole, supervisor, executor)) if lab.injections else whole


@fault("T05", "a worker that comes too late with every verb it has")
def come_too_late(lab: Laboratory) -> None:
    """Freeze a worker until another has its jobs, and wake its handlers first: all its writes are refused."""
    late: list[str] = []
    while lab.goes_on():
        late += _one_scene(lab, gate=str(lab.folder / f"gate-{lab.injections}"))
    lab.findings["offers_that_came_too_late"] = len(late)

    def look(_: Account) -> None:
        touched = [row.id for row in rows() if row.id in late and row.fence != 2]
        lab.expect(not touched, f"each of them is claimed twice, not so {len(touched)}: {touched[:3]}")
        shown = sorted(reported() & set(late))
        lab.expect(not shown, f"no late report of progress is shown, {len(shown)} are: {shown[:3]}")

    lab.afterwards(look)


def _one_scene(lab: Laboratory, gate: str) -> list[str]:
    """Let one worker come too late with some jobs, and return these."""
    options: dict[str, Any] = {"processes": 1, "concurrency": 3 * len(LATE_VERBS), "shutdown_grace": 5.0}
    (late,) = lab.crew.start(1, lease=60, apps=lab.trial.late_apps, **options)
    jobs = [job for verb in LATE_VERBS for job in lab.enqueue("late", 3, verb=verb, gate=gate)]
    until(lambda: lab.started(*jobs), "all have begun")
    supervisor, zygote, *executors = family = late.family()
    lab.crew.freeze(late, *family)
    end_leases()
    lab.crew.start(1, lease=60, **options)
    until(lambda: _begun_again(lab) >= set(jobs), "the other has all of them")
    Path(gate).touch()
    # The handlers first, so that what they come to lies ready when the supervisor wakes, and is offered.
    lab.crew.thaw(late, *executors)
    until(lambda: _over(lab) >= set(jobs), "the late ones have come to their ends")
    lab.crew.thaw(late, supervisor, zygote)
    until(lambda: all(job in late.output for job in jobs), "the late ones were offered")
    lab.injected(note=False)
    until(lambda: not left(), "all of them end")
    lab.crew.retire(*lab.crew.workers)
    return jobs


def _begun_again(lab: Laboratory) -> set[str]:
    return {one.job for one in lab.told(What.START) if one.fence > 1}


def _over(lab: Laboratory) -> set[str]:
    return {one.job for one in lab.told(What.END, What.BROKEN) if one.fence == 1}
